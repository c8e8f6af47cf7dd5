import { type ClassAccess, rootOf } from '#policy';
import type { ParseRow } from '../record-store.js';

/** What one find asked of a class, and of the rows it brings along. */
export interface RowGuard {
  readonly access: ClassAccess;
  /** Wire names that the caller gets; absent: every column it may see. */
  readonly keys: readonly string[] | undefined;
  /** By pointer field. */
  readonly includes: ReadonlyMap<string, RowGuard>;
}

/** The columns to fetch: those the caller gets, and those that decide what it gets of a row. */
export function fetchKeys({
  access,
  keys,
}: Pick<RowGuard, 'access' | 'keys'>): readonly string[] | undefined {
  const deciders = access.guarded?.perRow ? access.guarded.deciders : [];
  return keys && (deciders.length > 0 ? [...new Set([...keys, ...deciders])] : keys);
}

/** Takes from a fetched row, and from the rows inside it, what class-level permissions hide on each of them. */
export function guardRow(row: ParseRow, guard: RowGuard): void {
  const { access, keys, includes } = guard;
  // Decided first: included rows may lose what the decision reads.
  const hidden = access.guarded?.hiddenOn(row);
  for (const [field, inner] of includes) {
    const value = row[field];
    for (const entry of Array.isArray(value) ? value : [value]) if (isRow(entry)) guardRow(entry, inner);
  }
  if (!access.guarded) return;
  for (const name of hidden ?? []) delete row[name];
  if (!keys) return;
  const asked = new Set(keys.map(rootOf));
  for (const name of access.guarded.deciders) if (!asked.has(name)) delete row[name];
}

function isRow(value: unknown): value is ParseRow {
  return typeof value === 'object' && value !== null && (value as ParseRow)['__type'] === 'Object';
}
