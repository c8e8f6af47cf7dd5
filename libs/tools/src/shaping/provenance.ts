import type { ParseRow } from '#data';
import type { ToolCall } from '../tool.js';
import { simplifyRow } from './short-forms.js';

/** Stages after which a row is still the row of the aggregated class that its `_id` names. */
const KEEP_ROWS = new Set(['$match', '$sort', '$limit', '$skip', '$sample', '$redact', '$unset', '$unwind']);
/** Stages that add or choose members: they keep identity unless they touch the id. */
const ADD_MEMBERS = new Set(['$addFields', '$set', '$project']);
const JOINS = new Set(['$lookup', '$graphLookup']);
const IDENTITY = ['_id', 'objectId'];

const asObject = (value: unknown): Readonly<Record<string, unknown>> =>
  value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};

function stageKeepsIdentity(stage: unknown): boolean {
  const [operator = '', value] = Object.entries(asObject(stage))[0] ?? [];
  if (KEEP_ROWS.has(operator)) return true;
  const body = asObject(value);
  if (JOINS.has(operator)) return !IDENTITY.includes(String(body['as']));
  if (!ADD_MEMBERS.has(operator)) return false;
  const inclusion = operator === '$project' ? [1, true, 0, false] : [];
  return IDENTITY.every((id) => !Object.hasOwn(body, id) || inclusion.includes(body[id] as number));
}

/** Whether the rows of a pipeline are rows of its class, each under its own id. Grouped and reshaped rows are not. */
export function keepsRowIdentity(pipeline: unknown): boolean {
  return Array.isArray(pipeline) && pipeline.every(stageKeepsIdentity);
}

/**
 * The row with `_source` telling class, tool and row it came from. A `_source` that was in the data is replaced:
 * otherwise stored text could pose as provenance.
 */
export function stampSource(
  row: Readonly<ParseRow>,
  className: string,
  tool: string,
  objectId: string | null,
): ParseRow {
  const { _source: _, ...data } = row;
  return { ...data, _source: { class: className, tool, object_id: objectId } };
}

/** The id under which a row is known, in either spelling. */
export function rowId(row: Readonly<ParseRow>): string | null {
  const id = row['objectId'] ?? row['_id'];
  return typeof id === 'string' ? id : null;
}

/** Rows in the short form, each with its source when the operator asked for that. */
export function presentRows(rows: readonly ParseRow[], className: string, call: ToolCall): ParseRow[] {
  return sourced(rows.map(simplifyRow), className, call);
}

/** The stamp comes last: after redaction, projection and every change of form. */
export function sourced(rows: readonly ParseRow[], className: string, call: ToolCall): ParseRow[] {
  if (!call.switches.includeSourceProvenance) return [...rows];
  return rows.map((row) => stampSource(row, className, call.tool.name, rowId(row)));
}
