import { type AgentScope, type ClassAccess, redact, withholdUnreadable } from '#policy';
import type { GovernedClass } from '../governed-records.js';
import type { ParseRow } from '../record-store.js';
import { reportMalformed } from './malformed-rights.js';
import { guardRow, type RowGuard } from './row-guard.js';

/** The last passes over fetched rows: protected columns, rows inside rows, withheld classes and internal columns. */
export function shownRows(rows: readonly ParseRow[], scope: AgentScope, guard?: RowGuard): ParseRow[] {
  const { strings } = scope.rights.principals;
  return rows.map((row) => {
    if (guard) guardRow(row, guard);
    const own = strings === null ? row : withholdUnreadable(row, strings, reportMalformed);
    return redact(own, (name) => scope.isWithheld(name)) as ParseRow;
  });
}

/** What may be told of a class; null for one whose schema is not known. */
export function shownClass(
  { className, schema, readable }: ClassAccess,
  scope: AgentScope,
): GovernedClass | null {
  if (!schema) return null;
  const fields = [...schema.fields.keys()].filter((name) => readable?.has(name) ?? true);
  return { className, schema, policy: scope.classPolicy(className), fields };
}
