import { type AnswerLeft, type FindQuery, type IncludePlan, type ParseRow, PlacedRows } from '#data';
import { isPointer } from '../query/plain-value.js';

/** Ids asked for in one request. */
const BATCH = 500;

/**
 * Puts included rows in place of their pointers: one further find per plan, under the target's own limits. Parse Server's
 * own `include` is never used, because it knows nothing of them.
 */
export async function includeRows(
  rows: readonly ParseRow[],
  plans: readonly IncludePlan[],
  find: (query: FindQuery) => Promise<ParseRow[]>,
  left: AnswerLeft,
): Promise<void> {
  for (const plan of plans) {
    const ids = [...new Set(rows.flatMap((row) => idsIn(row[plan.field], plan)))];
    const found = new PlacedRows(left, 'Parse Server');
    for (let from = 0; from < ids.length; from += BATCH) {
      for (const row of await find(batchOf(plan, ids.slice(from, from + BATCH))))
        found.add(String(row['objectId']), { __type: 'Object', className: plan.targetClass, ...row });
    }
    const resolve = (value: unknown): unknown =>
      isPointer(value) && value.className === plan.targetClass
        ? (found.place(value.objectId) ?? value)
        : value;
    for (const row of rows) {
      const value = row[plan.field];
      if (value !== undefined) row[plan.field] = Array.isArray(value) ? value.map(resolve) : resolve(value);
    }
  }
}

function batchOf({ targetClass: className, where, keys, include }: IncludePlan, ids: string[]): FindQuery {
  const wanted = { objectId: ids.length === 1 ? ids[0] : { $in: ids } };
  return {
    className,
    where: Object.keys(where).length === 0 ? wanted : { $and: [wanted, where] },
    ...(keys && { keys }),
    include,
    limit: ids.length,
  };
}

function idsIn(value: unknown, plan: IncludePlan): string[] {
  const members: unknown[] = Array.isArray(value) ? value : [value];
  return members
    .filter(isPointer)
    .filter((pointer) => pointer.className === plan.targetClass)
    .map((pointer) => pointer.objectId);
}
