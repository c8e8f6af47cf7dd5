import type { Refusal } from '#core';
import { listDeclaredNames } from '../json-schema.js';
import type { JsonSchema } from '#schema';
import { ToolContent, type ToolOutcome } from '../tool.js';
import {
  byteLength,
  MAX_RESULT_BYTES,
  type OversizeOptions,
  oversizeRefusal,
  measurePrinted,
  removableField,
  resultText,
  takeSample,
  weighFields,
  withoutField,
} from './oversize-refusal.js';
import { valueAt } from './text-formats.js';
import { findTextOfRows, withTextOfRows } from './text-of-rows.js';

export interface FittedResult {
  readonly data: unknown;
  /** The JSON of `data`. */
  readonly text: string;
  /** Whether `data` can travel as structured content, which every protocol revision accepts as an object only. */
  readonly structured: boolean;
}

type Envelope = Readonly<Record<string, unknown>>;

/** Reserve for values that the estimate cannot include: the digits and ids that the annotation itself adds. */
const HEADROOM_BYTES = 256;
/** Two levels of two spaces: the indentation of a row in the printed envelope. */
const ROW_INDENT = 4;

/** Maximum characters that are printed to measure a result; a result that may be larger is not printed. */
const MOST_PRINTED = 64 * 1024 * 1024;

/** Null: larger than any result may be, and not printed. */
const printWithin = (data: unknown, pretty: boolean): string | null =>
  measurePrinted(data, MOST_PRINTED) > MOST_PRINTED ? null : resultText(data, pretty);
const isEnvelope = (data: unknown): data is Envelope =>
  data !== null && typeof data === 'object' && !Array.isArray(data);

const toFitted = (data: unknown, text: string): FittedResult => ({
  data,
  text,
  structured: isEnvelope(data),
});

/** A result as the outcome of its call. @param declared whether the tool declares the schema of its results */
export function toOutcome(
  { data, text, structured }: FittedResult,
  declared: boolean,
): Extract<ToolOutcome, { ok: true }> {
  return { ok: true, data, text, structured: structured && declared };
}

/** Bytes of the text of an outcome. */
export function textBytes({ text }: Extract<ToolOutcome, { ok: true }>): number {
  return Buffer.byteLength(text);
}

/** Bytes of a row inside the printed envelope, with its separator and the indentation of each line. */
function countPrintedBytes(row: unknown, pretty: boolean): number {
  const text = printWithin(row, pretty);
  if (text === null) return MOST_PRINTED;
  if (!pretty) return Buffer.byteLength(text) + ','.length;
  const lines = text.split('\n').length;
  return Buffer.byteLength(text) + lines * ROW_INDENT + ',\n'.length;
}

function keepRows(
  recovery: Recovery,
  dropped: string | null,
  rows: readonly unknown[],
  { cap, pretty }: { readonly cap: number; readonly pretty: boolean },
) {
  const estimate = () => {
    const trimmed = takeSample(rows);
    const perRow = trimmed.reduce((sum, row) => sum + byteLength(row), 0) / Math.max(trimmed.length, 1);
    const budget = cap - Buffer.byteLength(resultText(recovery.build([], dropped), pretty)) - HEADROOM_BYTES;
    return Math.min(rows.length, Math.floor(budget / Math.max(perRow, 1)));
  };
  const attempt = (kept: number): FittedResult | null => {
    const data = recovery.build(rows.slice(0, kept), dropped);
    const text = printWithin(data, pretty);
    return text !== null && Buffer.byteLength(text) <= cap ? toFitted(data, text) : null;
  };
  const whole = attempt(rows.length);
  if (whole) return whole;

  let kept = Math.min(estimate(), rows.length - 1);
  // Estimates by row weight first: printing the whole result for each step would be quadratic in a result of megabytes.
  let bytes = rows
    .slice(0, Math.max(kept, 0))
    .reduce<number>((sum, row) => sum + countPrintedBytes(row, pretty), 0);
  for (; kept > 0 && bytes > cap; kept -= 1) bytes -= countPrintedBytes(rows[kept - 1], pretty);
  for (; kept > 0; kept -= 1) {
    const part = attempt(kept);
    if (part) return part;
  }
  return null;
}

export interface FitOptions {
  /** Maximum bytes of the text. */
  readonly cap?: number;
  /** The policy's `prettyText`. Default false. */
  readonly pretty?: boolean;
  /** Of the tool: a refusal advises no argument that it does not declare. */
  readonly inputSchema?: JsonSchema | undefined;
  /** Of the call, which the call that continues repeats. */
  readonly args?: unknown;
}

/**
 * The result to send, its text at most `cap` bytes. Rows of built-in tools lose their heaviest field and then the last of them, other
 * lists their last entries, texts of rows their last lines, and report it under `_truncated`; any other oversized result is refused.
 */
export function fitToSize(
  toolName: string,
  data: unknown,
  { cap = MAX_RESULT_BYTES, pretty = false, inputSchema = {}, args = {} }: FitOptions = {},
): FittedResult | Refusal {
  const text = printWithin(data, pretty);
  const bytes = text === null ? null : Buffer.byteLength(text);
  if (text !== null && bytes !== null && bytes <= cap) return toFitted(data, text);

  const shorter = isEnvelope(data) ? keepLines(data, { cap, pretty }) : null;
  if (shorter) return shorter;
  const takes = listDeclaredNames(inputSchema);
  const recovery = isEnvelope(data) ? recoveryFor(toolName, data, cap, repeatDeclared(args, takes)) : null;
  if (recovery && recovery.rows.length > 0) {
    const dropped = recovery.wholeEntries ? null : removableField(weighFields(recovery.rows));
    const trimmed = recovery.rows.map((row) => withoutField(row, dropped));
    const kept = keepRows(recovery, dropped, trimmed, { cap, pretty });
    if (kept) return kept;
  }
  return oversizeRefusal(bytes, cap, readParts(data), {
    name: toolName,
    takes,
  });
}

/** The arguments of a call that the tool has: what else was sent, such as an identity, is not repeated. */
const repeatDeclared = (args: unknown, takes: readonly string[]): Envelope =>
  isEnvelope(args) ? Object.fromEntries(Object.entries(args).filter(([name]) => takes.includes(name))) : {};

/** Members with the entries of built-in results, and whether the entries are rows. */
const LISTS = [
  ['results', true],
  ['samples', true],
  ['groups', false],
  ['values', false],
  ['chunks', false],
  ['suggestions', false],
] as const;

/** The text with as many of its rows as fit; null: it is none, or not one row fits. */
function keepLines(data: Envelope, { cap, pretty }: { readonly cap: number; readonly pretty: boolean }) {
  const text = findTextOfRows(data);
  if (!text) return null;
  const of = text.rows.length;
  const attempt = (kept: number): FittedResult | null => {
    const _truncated = annotation({ dropped: null, kept, of, cap }, 'Fewer columns make room for more.');
    const shorter = { ...text.build(kept), _truncated };
    const printed = resultText(shorter, pretty);
    return Buffer.byteLength(printed) <= cap ? toFitted(shorter, printed) : null;
  };
  let best: FittedResult | null = null;
  for (let [least, most] = [1, of - 1]; least <= most;) {
    const kept = Math.floor((least + most) / 2);
    const fitted = attempt(kept);
    if (fitted) [best, least] = [fitted, kept + 1];
    else most = kept - 1;
  }
  return best;
}

/** The entries of a built-in's envelope. */
function readParts(data: unknown): OversizeOptions | null {
  if (!isEnvelope(data)) return null;
  const text = findTextOfRows(data);
  if (text) {
    const { rows, columns } = text;
    const entries = rows.map((row) =>
      Object.fromEntries(columns.map(({ path }) => [path, valueAt(row, path)])),
    );
    return { className: null, entries, rows: true };
  }
  const className = typeof data['class_name'] === 'string' ? data['class_name'] : null;
  for (const [member, rows] of LISTS) {
    const entries = data[member];
    if (Array.isArray(entries)) return { className, entries, rows };
  }
  const { objects, object } = data;
  if (isEnvelope(objects)) return { className, entries: Object.values(objects), rows: true };
  return isEnvelope(object) ? { className, entries: [object], rows: true } : null;
}

/** Rebuilds one tool's oversized envelope from fewer rows. */
interface Recovery {
  readonly rows: readonly unknown[];
  /** Entries lose no field: they are no rows. */
  readonly wholeEntries?: boolean;
  /** @param kept the first rows, already without the dropped field */
  build(kept: readonly unknown[], droppedField: string | null): Envelope;
}

interface Cut {
  readonly dropped: string | null;
  readonly kept: number;
  readonly of: number;
  readonly cap: number;
  /** What the entries are. Default: rows. */
  readonly entries?: string;
}

const without = (envelope: Envelope, names: readonly string[]): Envelope =>
  Object.fromEntries(Object.entries(envelope).filter(([name]) => !names.includes(name)));

function whatHappened({ dropped, kept, of, cap, entries = 'rows' }: Cut): string {
  const field = dropped === null ? [] : [`field '${dropped}' was left out of every row`];
  const rows = kept < of ? [`only the first ${kept} of ${of} ${entries} are shown`] : [];
  return `To stay within ${cap} bytes, ${[...field, ...rows].join(' and ')}.`;
}

const annotation = (cut: Cut, hint: string, extra: Envelope = {}): Envelope => ({
  reason: 'response_exceeded_max_bytes',
  dropped_fields: cut.dropped === null ? [] : [cut.dropped],
  kept_count: cut.kept,
  original_count: cut.of,
  ...extra,
  hint: [whatHappened(cut), hint].filter(Boolean).join(' '),
});

const readDropped = ({ dropped }: Cut) =>
  dropped === null ? '' : `Read '${dropped}' of a row with get_object(class_name, object_id).`;

function readSkip(envelope: Envelope): number {
  const skip = (envelope['pagination'] as { skip?: unknown } | undefined)?.skip;
  return typeof skip === 'number' ? skip : 0;
}

/** Calls for further rows. */
const OFFERED_CALLS = new Set(['next_call', 'truncated_call']);

function queryRows(envelope: Envelope, rows: readonly unknown[], cap: number, args: Envelope): Recovery {
  const rest = without(envelope, [
    'result_count',
    'truncated',
    'truncated_note',
    'next_call',
    'truncated_call',
  ]);
  return {
    rows,
    build(kept, dropped) {
      const cut = { dropped, kept: kept.length, of: rows.length, cap };
      if (cut.kept === cut.of) {
        // The offered calls still return the rows behind the display cap, and the next page.
        const offered = Object.entries(envelope).filter(([name]) => OFFERED_CALLS.has(name));
        return {
          ...rest,
          ...Object.fromEntries(offered),
          results: kept,
          _truncated: annotation(cut, readDropped(cut)),
        };
      }
      const nextSkip = readSkip(envelope) + cut.kept;
      const hint = `Follow next_call for the others. ${readDropped(cut)}`.trim();
      const next_call = { tool: 'query_class', arguments: { ...args, skip: nextSkip } };
      return { ...rest, next_call, results: kept, _truncated: annotation(cut, hint) };
    },
  };
}

function aggregateRows(envelope: Envelope, rows: readonly unknown[], cap: number): Recovery {
  const rest = without(envelope, ['result_count', 'truncated', 'truncated_note', 'next_call', 'hint']);
  return {
    rows,
    build(kept, dropped) {
      const cut = { dropped, kept: kept.length, of: rows.length, cap };
      const hint = 'Add a $match stage for fewer rows, or a $project stage for smaller ones.';
      return { ...rest, results: kept, _truncated: annotation(cut, hint) };
    },
  };
}

function objectsById(envelope: Envelope, objects: Envelope, cap: number): Recovery {
  const ids = Object.keys(objects);
  return {
    rows: Object.values(objects),
    build(kept, dropped) {
      const cut = { dropped, kept: kept.length, of: ids.length, cap };
      const missing = ids.slice(kept.length);
      const again = missing.length > 0 ? 'Ask for the ids in dropped_for_size again, fewer at a time. ' : '';
      return {
        ...envelope,
        objects: Object.fromEntries(kept.map((row, index) => [ids[index] as string, row])),
        _truncated: annotation(cut, (again + readDropped(cut)).trim(), { dropped_for_size: missing }),
      };
    },
  };
}

/** Tools that answer with a list in their own order: the first entries, and how to ask for the others. */
const BUILT_IN_LISTS: ReadonlyMap<string, string> = new Map([
  ['get_sample_objects', 'Ask for fewer with limit, or page with query_class(order: "-createdAt").'],
  [
    'group_by',
    'Ask for fewer with limit, or page with aggregate: sort its groups by _id, then $skip and $limit.',
  ],
  ['group_by_date', 'Ask for a coarser interval, or a shorter time with where.'],
  [
    'distinct',
    'Ask for fewer with limit, or page with aggregate: sort its groups by _id, then $skip and $limit.',
  ],
  ['atlas_text_search', 'Ask for fewer with limit.'],
  ['atlas_autocomplete', 'Ask for fewer with limit.'],
  ['semantic_search', 'Ask for fewer with k, or for smaller passages with chunk_size.'],
  ['find_similar', 'Ask for fewer with limit.'],
]);

function listEntries(
  envelope: Envelope,
  [member, areRows]: (typeof LISTS)[number],
  hint: string,
  cap: number,
): Recovery {
  const rows = envelope[member] as readonly unknown[];
  return {
    rows,
    wholeEntries: !areRows,
    build(kept, dropped) {
      const entries = areRows ? 'rows' : member;
      const cut = { dropped, kept: kept.length, of: rows.length, cap, entries };
      return {
        ...envelope,
        [member]: kept,
        _truncated: annotation(cut, `${hint} ${readDropped(cut)}`.trim()),
      };
    },
  };
}

interface PagedList {
  /** The members that hold it. */
  readonly members: readonly string[];
  readonly entries: string;
}

/** Lists without rows, by the tool that continues them with `skip`. */
const PAGED_LISTS: ReadonlyMap<string, PagedList> = new Map([
  ['list_tools', { members: ['tools'], entries: 'tools' }],
  ['get_all_schemas', { members: ['built_in', 'custom'], entries: 'classes' }],
  ['get_schema', { members: ['fields'], entries: 'fields' }],
]);

function pagedEntries(
  tool: string,
  envelope: Envelope,
  { members, entries: named }: PagedList,
  { cap, args }: { readonly cap: number; readonly args: Envelope },
): Recovery {
  const lists = members.map((member) => [member, envelope[member] as readonly unknown[]] as const);
  const rows = lists.flatMap(([, entries]) => entries);
  return {
    rows,
    wholeEntries: true,
    build(kept) {
      const cut = { dropped: null, kept: kept.length, of: rows.length, cap, entries: named };
      let next = 0;
      const parts = lists.map(
        ([member, { length }]) => [member, kept.slice(next, (next += length))] as const,
      );
      const skip = (typeof args['skip'] === 'number' ? args['skip'] : 0) + kept.length;
      return {
        ...envelope,
        ...Object.fromEntries(parts),
        next_call: { tool, arguments: { ...args, skip } },
        _truncated: annotation(cut, 'Follow next_call for the others.'),
      };
    },
  };
}

function oneObject(envelope: Envelope, cap: number): Recovery {
  return {
    rows: [envelope['object']],
    build([object], dropped) {
      const cut = { dropped, kept: 1, of: 1, cap };
      const hint =
        dropped === null ? '' : `Read parts of it by keys, such as ["${dropped}.NAME"], or by export_data.`;
      return { ...envelope, object: object ?? null, _truncated: annotation(cut, hint) };
    },
  };
}

/** Null when a tool's results are refused rather than cut, or do not have the form that can be cut. */
function recoveryFor(toolName: string, envelope: Envelope, cap: number, args: Envelope): Recovery | null {
  const { results, objects } = envelope;
  if (toolName === 'query_class')
    return Array.isArray(results) ? queryRows(envelope, results, cap, args) : null;
  if (toolName === 'aggregate') return Array.isArray(results) ? aggregateRows(envelope, results, cap) : null;
  if (toolName === 'get_objects' && objects !== null && typeof objects === 'object')
    return objectsById(envelope, objects as Envelope, cap);
  if (toolName === 'get_object' && isEnvelope(envelope['object'])) return oneObject(envelope, cap);
  const paged = PAGED_LISTS.get(toolName);
  if (paged?.members.every((member) => Array.isArray(envelope[member])))
    return pagedEntries(toolName, envelope, paged, { cap, args });
  const list = LISTS.find(([member]) => Array.isArray(envelope[member]));
  const hint = BUILT_IN_LISTS.get(toolName);
  return list && hint !== undefined ? listEntries(envelope, list, hint, cap) : null;
}

function withNote(data: Envelope, note: string): Envelope {
  const name = LISTS.map(([member]) => member).find((member) => member in data);
  if (name === undefined) return { ...data, note };
  const { [name]: rows, ...rest } = data;
  return { ...rest, note, [name]: rows };
}

/** The answer of a tool with remarks in its `note`, in front of its rows. Any other result stays as it is. */
export function withNotes(data: unknown, notes: ReadonlySet<string>): unknown {
  if (notes.size === 0 || !isEnvelope(data) || data instanceof ToolContent) return data;
  const note = [...notes].join(' ');
  const text = findTextOfRows(data);
  if (text) {
    const build = (kept: number) => ({ ...text.build(kept), note });
    return withTextOfRows({ ...data, note }, { ...text, build });
  }
  return 'note' in data ? data : withNote(data, note);
}
