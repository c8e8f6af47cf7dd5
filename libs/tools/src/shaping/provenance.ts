import type { ParseRow, TextRequest } from '#data';
import type { ToolCall } from '../tool.js';
import { simplifyRow } from './short-forms.js';

/** Stages that keep each row's identity: its `_id` still names a row of the aggregated class. */
const KEEP_ROWS = new Set(['$match', '$sort', '$limit', '$skip', '$sample', '$redact', '$unset', '$unwind']);
/** Stages that add or select members: they keep identity unless they change the id. */
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

/** Whether the rows of a pipeline are rows of its class with their own ids. Grouped and reshaped rows are not. */
export function keepsRowIdentity(pipeline: unknown): boolean {
  return Array.isArray(pipeline) && pipeline.every(stageKeepsIdentity);
}

/**
 * Adds `_source` with the class, tool and row of origin. A `_source` in the data is replaced: otherwise stored text
 * could pose as provenance.
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

/** The id of a row, in either spelling. */
export function rowId(row: Readonly<ParseRow>): string | null {
  const id = row['objectId'] ?? row['_id'];
  return typeof id === 'string' ? id : null;
}

/** Rows in the short form, with their source when the operator enabled it. */
export function presentRows(rows: readonly ParseRow[], className: string, call: ToolCall): ParseRow[] {
  return sourced(rows.map(simplifyRow), className, call);
}

/** A request for the same rows as text. Undefined: the source of a row depends on its other columns. */
export function presentedText({ switches }: ToolCall, atMost: number): TextRequest | undefined {
  return switches.includeSourceProvenance ? undefined : { present: simplifyRow, atMost };
}

/** The stamp comes last: after redaction, projection and every conversion. */
export function sourced(rows: readonly ParseRow[], className: string, call: ToolCall): ParseRow[] {
  if (!call.switches.includeSourceProvenance) return [...rows];
  return rows.map((row) => stampSource(row, className, call.tool.name, rowId(row)));
}
