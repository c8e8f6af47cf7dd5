import { type Refusal, isJsonObject } from '#core';
import type { JsonSchema } from '#schema';
import { listDeclaredNames } from '../json-schema.js';
import { ToolContent } from '../tool.js';
import {
  byteLength,
  type OversizeOptions,
  oversizeRefusal,
  removableField,
  takeSample,
  weighFields,
  withoutField,
} from './oversize-refusal.js';
import { MAX_RESULT_BYTES, measurePrinted, resultText } from './presented-rows.js';
import { annotation, type Envelope, LISTS, type Recovery, recoveryFor } from './shorter-envelopes.js';
import { valueAt, findTextOfRows, withTextOfRows } from './text-formats.js';

export interface FittedResult {
  readonly data: unknown;
  /** The JSON of `data`. */
  readonly text: string;
  /** Whether `data` can travel as structured content, which every protocol revision accepts as an object only. */
  readonly structured: boolean;
}

type Limit = Required<Pick<FitOptions, 'cap' | 'pretty'>>;

/** Reserve for values that the estimate cannot include: the digits and ids that the annotation itself adds. */
const HEADROOM_BYTES = 256;
/** Two levels of two spaces: the indentation of a row in the printed envelope. */
const ROW_INDENT = 4;

/** Maximum characters that are printed to measure a result; a result that may be larger is not printed. */
const MOST_PRINTED = 64 * 1024 * 1024;

/** Null: larger than any result may be, and not printed. */
const printWithin = (data: unknown, pretty: boolean): string | null =>
  measurePrinted(data, MOST_PRINTED) > MOST_PRINTED ? null : resultText(data, pretty);

const toFitted = (data: unknown, text: string): FittedResult => ({
  data,
  text,
  structured: isJsonObject(data),
});

/** Null: its text is larger than the limit. */
function fitWhole(data: unknown, { cap, pretty }: Limit): FittedResult | null {
  const text = printWithin(data, pretty);
  return text !== null && Buffer.byteLength(text) <= cap ? toFitted(data, text) : null;
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
  { cap, pretty }: Limit,
) {
  const estimate = () => {
    const trimmed = takeSample(rows);
    const perRow = trimmed.reduce((sum, row) => sum + byteLength(row), 0) / Math.max(trimmed.length, 1);
    const budget = cap - Buffer.byteLength(resultText(recovery.build([], dropped), pretty)) - HEADROOM_BYTES;
    return Math.min(rows.length, Math.floor(budget / Math.max(perRow, 1)));
  };
  const attempt = (kept: number) => fitWhole(recovery.build(rows.slice(0, kept), dropped), { cap, pretty });
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
 * lists their last entries, texts of rows their last lines, rows that were written their heaviest fields, and report it under
 * `_truncated`; any other oversized result is refused.
 */
export function fitToSize(
  toolName: string,
  data: unknown,
  { cap = MAX_RESULT_BYTES, pretty = false, inputSchema = {}, args = {} }: FitOptions = {},
): FittedResult | Refusal {
  const text = printWithin(data, pretty);
  const bytes = text === null ? null : Buffer.byteLength(text);
  if (text !== null && bytes !== null && bytes <= cap) return toFitted(data, text);

  const shorter = isJsonObject(data) ? keepLines(data, { cap, pretty }) : null;
  if (shorter) return shorter;
  const takes = listDeclaredNames(inputSchema);
  const recovery = isJsonObject(data) ? recoveryFor(toolName, data, cap, repeatDeclared(args, takes)) : null;
  if (recovery && recovery.rows.length > 0) {
    const dropped = recovery.wholeEntries ? null : removableField(weighFields(recovery.rows));
    const trimmed = recovery.rows.map((row) => withoutField(row, dropped));
    const kept = keepRows(recovery, dropped, trimmed, { cap, pretty });
    if (kept) return kept;
  }
  for (const written of isJsonObject(data) ? shortenWritten(toolName, data, cap) : []) {
    const fitted = fitWhole(written, { cap, pretty });
    if (fitted) return fitted;
  }
  return oversizeRefusal(bytes, cap, readParts(data), {
    name: toolName,
    takes,
  });
}

/** The arguments of a call that the tool has: what else was sent, such as an identity, is not repeated. */
const repeatDeclared = (args: unknown, takes: readonly string[]): Envelope =>
  isJsonObject(args) ? Object.fromEntries(Object.entries(args).filter(([name]) => takes.includes(name))) : {};

/** The text with as many of its rows as fit; null: it is none, or not one row fits. */
function keepLines(data: Envelope, { cap, pretty }: Limit) {
  const text = findTextOfRows(data);
  if (!text) return null;
  const of = text.rows.length;
  const attempt = (kept: number) => {
    const _truncated = annotation({ dropped: null, kept, of, cap }, 'Fewer columns make room for more.');
    return fitWhole({ ...text.build(kept), _truncated }, { cap, pretty });
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
  if (!isJsonObject(data)) return null;
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
  if (isJsonObject(objects)) return { className, entries: Object.values(objects), rows: true };
  return isJsonObject(object) ? { className, entries: [object], rows: true } : null;
}

function withNote(data: Envelope, note: string): Envelope {
  const name = LISTS.map(([member]) => member).find((member) => member in data);
  if (name === undefined) return { ...data, note };
  const { [name]: rows, ...rest } = data;
  return { ...rest, note, [name]: rows };
}

const joinNotes = (notes: readonly string[]): string => notes.join('; ').replaceAll('.; ', '; ');

/** The answer of a tool with remarks in its `note`, in front of its rows, or as one more block. Any other result stays as it is. */
export function withNotes(data: unknown, notes: ReadonlySet<string>): unknown {
  if (notes.size === 0 || !isJsonObject(data)) return data;
  const note = joinNotes([...notes]);
  if (data instanceof ToolContent)
    return new ToolContent([...data.blocks, { type: 'text', text: note }], data.data);
  const text = findTextOfRows(data);
  if (text) {
    const build = (kept: number) => ({ ...text.build(kept), note });
    return withTextOfRows({ ...data, note }, { ...text, build });
  }
  const { note: own } = data;
  if (typeof own === 'string') return { ...data, note: joinNotes([own, ...notes]) };
  return own === undefined ? withNote(data, note) : data;
}

/** Tools that answer with the row that they wrote, or propose to write. */
const WRITING_TOOLS: ReadonlySet<string> = new Set(['create_object', 'update_object', 'delete_object']);
const MEMBERS = ['object', 'before', 'after'] as const;

/**
 * Answers to a write without the heaviest field of its row, without the two heaviest, and so on. A write that has happened is never
 * answered with a refusal: it would be made again.
 */
function* shortenWritten(toolName: string, answer: Envelope, cap: number): Generator<Envelope> {
  if (!WRITING_TOOLS.has(toolName)) return;
  const dropped: string[] = [];
  let shorter = answer;
  for (const { field } of weighFields(MEMBERS.map((member) => answer[member]))) {
    dropped.push(field);
    const rows = MEMBERS.filter((member) => isJsonObject(shorter[member]));
    shorter = {
      ...shorter,
      ...Object.fromEntries(rows.map((member) => [member, withoutField(shorter[member], field)])),
    };
    yield {
      ...shorter,
      _truncated: {
        reason: 'response_exceeded_max_bytes',
        dropped_fields: [...dropped],
        hint: `The call is done: do not repeat it. To stay within ${cap} bytes, fields of the row were left out: get_object reads them.`,
      },
    };
  }
}
