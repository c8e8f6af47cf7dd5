import { type AgentScope, type ClassAccess, redact } from '#policy';
import type { ParseRow } from '../record-store.js';

/** A row that came back from a write, as a read of it would have answered. */
export function presentRow(row: ParseRow, { readable }: ClassAccess, scope: AgentScope): ParseRow {
  const kept = readable
    ? Object.fromEntries(Object.entries(row).filter(([field]) => readable.has(field)))
    : row;
  return redact(kept, (className) => scope.isWithheld(className)) as ParseRow;
}
