import { type ClassAccess, fetchableColumns, parseKeys, redact } from '#policy';
import type { ParseRow } from '../record-store.js';
import { guardRow, type Onlooker } from './row-guard.js';

/** A row that came back from a write, as a read of it would have answered. */
export function presentRow(row: ParseRow, access: ClassAccess, onlooker: Onlooker): ParseRow {
  const fetchable = fetchableColumns(access);
  const kept = fetchable
    ? Object.fromEntries(Object.entries(row).filter(([field]) => fetchable.has(field)))
    : row;
  guardRow(kept, { access, keys: parseKeys(undefined, access), includes: new Map() }, onlooker);
  return redact(kept, (className) => onlooker.scope.isWithheld(className)) as ParseRow;
}
