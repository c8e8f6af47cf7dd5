import { setOwn } from '#core';
import { type AnswerLeft, type FindQuery, type IncludePlan, type ParseRow, PlacedRows } from '#data';
import { isPointer } from '../storage/class-storage.js';
import { isPlainObject } from '#policy';

/** As a read answers a row in the place of its pointer. */
export function toIncludedRow(row: ParseRow, plan: IncludePlan): ParseRow {
  return { __type: 'Object', className: plan.targetClass, ...row };
}

/** Ids in one command. */
const BATCH_SIZE = 1000;

type Find = (query: FindQuery) => Promise<ParseRow[]>;

/** Whether the command that read rows of this class left the include unresolved. */
export type NeedsBatch = (plan: IncludePlan, className: string) => boolean;

/**
 * Resolves includes that the rows' own command could not join: pointers inside arrays or to another database, and every
 * pointer of a search by distance. One further find per plan and thousand ids, all under the same deadline.
 */
export async function resolveBatched(
  rows: readonly ParseRow[],
  className: string,
  plans: readonly IncludePlan[],
  needsBatch: NeedsBatch,
  find: Find,
  left: AnswerLeft,
): Promise<void> {
  for (const plan of plans) {
    if (needsBatch(plan, className)) await replacePointers(rows, plan, find, left);
    else
      await resolveBatched(
        listJoinedRows(rows, plan),
        plan.targetClass,
        plan.include,
        needsBatch,
        find,
        left,
      );
  }
}

/** Rows that a join already resolved, whose own includes may still need a batch. */
function listJoinedRows(rows: readonly ParseRow[], plan: IncludePlan): ParseRow[] {
  return rows
    .map((row) => row[plan.field])
    .filter((value): value is ParseRow => isPlainObject(value) && value['__type'] === 'Object');
}

async function replacePointers(
  rows: readonly ParseRow[],
  plan: IncludePlan,
  find: Find,
  left: AnswerLeft,
): Promise<void> {
  const ids = [...new Set(rows.flatMap((row) => pointersIn(row[plan.field], plan)))];
  const found = new PlacedRows(left);
  for (let from = 0; from < ids.length; from += BATCH_SIZE) {
    const batch = ids.slice(from, from + BATCH_SIZE);
    const where = { $and: [plan.where, { objectId: { $in: batch } }] };
    const { targetClass: className, keys, include } = plan;
    for (const row of await find({ className, where, ...(keys && { keys }), include, limit: batch.length }))
      found.add(String(row['objectId']), toIncludedRow(row, plan));
  }
  const resolve = (value: unknown): unknown =>
    isPointer(value) && value.className === plan.targetClass ? (found.place(value.objectId) ?? value) : value;
  for (const row of rows) {
    const value = row[plan.field];
    if (value !== undefined)
      setOwn(row, plan.field, Array.isArray(value) ? value.map(resolve) : resolve(value));
  }
}

function pointersIn(value: unknown, plan: IncludePlan): string[] {
  const members: unknown[] = Array.isArray(value) ? value : [value];
  return members
    .filter(isPointer)
    .filter((pointer) => pointer.className === plan.targetClass)
    .map((pointer) => pointer.objectId);
}
