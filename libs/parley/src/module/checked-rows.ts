import type { FindQuery, IncludePlan, ParseRow } from '#data';
import { comparedColumns, contradicts } from './plain-constraints.js';

const ALWAYS = ['objectId', 'createdAt', 'updatedAt'];
/** What a row inside a row says of itself. */
const OF_OBJECTS = ['__type', 'className'];

const rootOf = (path: string) => path.split('.', 1)[0] ?? path;

/** What was asked of a class. */
export type Wanted = Pick<FindQuery, 'where' | 'keys' | 'include'>;

/** The question with what its rows are held against among its keys. */
export function comparable({ where, keys, include }: Wanted): Pick<FindQuery, 'keys' | 'include'> {
  return {
    ...(keys && { keys: [...new Set([...keys, ...comparedColumns(where)])] }),
    ...(include && { include: include.map((plan) => ({ ...plan, ...comparable(plan) })) }),
  };
}

export const isAdmitted = (row: ParseRow, { where }: Wanted): boolean =>
  isRow(row) && !contradicts(row, where);

/** The row with the columns that were asked for, and of rows inside it likewise. */
export function cut(row: ParseRow, { keys, include = [] }: Wanted): ParseRow {
  const kept = keys && new Set([...keys.map(rootOf), ...ALWAYS, ...OF_OBJECTS]);
  const shown = kept ? Object.entries(row).filter(([name]) => kept.has(name)) : Object.entries(row);
  const included = new Map(include.map((plan) => [plan.field, plan]));
  return Object.fromEntries(shown.map(([name, value]) => [name, cutInside(value, included.get(name))]));
}

/** Without a plan there is nothing but a pointer. */
function cutInside(value: unknown, plan: IncludePlan | undefined): unknown {
  if (Array.isArray(value)) return value.map((entry: unknown) => cutInside(entry, plan));
  if (!isRow(value) || value['__type'] !== 'Object') return value;
  if (plan && isAdmitted(value, plan)) return cut(value, plan);
  return { __type: 'Pointer', className: value['className'], objectId: value['objectId'] };
}

function isRow(value: unknown): value is ParseRow {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
