import { AUTH_DATA_PREFIX, INTERNAL_FIELDS } from '#policy';

/** Columns Parse keeps for itself, as they are stored. They never leave the store, whatever a query projects or renames. */
export const INTERNAL_COLUMNS: readonly string[] = INTERNAL_FIELDS.filter((name) => name.startsWith('_'));

const INTERNAL = new Set(INTERNAL_COLUMNS);

export function isInternalColumn(name: string): boolean {
  return INTERNAL.has(name) || name.startsWith(AUTH_DATA_PREFIX);
}
