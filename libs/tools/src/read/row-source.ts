import type { ParseRow } from '#data';
import { rowId, stampSource } from '../shaping/provenance.js';
import { simplifyRow } from '../shaping/simplify.js';
import type { ToolCall } from '../tool.js';

/** Rows in the short form, each telling where it came from when the operator asked for that. */
export function presentRows(rows: readonly ParseRow[], className: string, call: ToolCall): ParseRow[] {
  const simple = rows.map(simplifyRow);
  return sourced(simple, className, call);
}

/** The stamp comes last: after redaction, projection and every change of form. */
export function sourced(rows: readonly ParseRow[], className: string, call: ToolCall): ParseRow[] {
  if (!call.switches.includeSourceProvenance) return [...rows];
  return rows.map((row) => stampSource(row, className, call.tool.name, rowId(row)));
}
