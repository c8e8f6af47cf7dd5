import type { Refusal } from '#agent';
import type { OversizeParts } from './oversize-advice.js';
import { oversizeRefusal } from './oversize-refusal.js';
import { recoveryFor, type Recovery } from './oversize-recovery.js';
import { printedAtMost } from './printed-size.js';
import { byteLength, heaviestField, sampleOf, weighFields, withoutField } from './row-weights.js';

/** Bytes of pretty-printed JSON that one result may have. */
export const MAX_RESULT_BYTES = 4_194_304;

export interface FittedResult {
  readonly data: unknown;
  /** The pretty-printed JSON of `data`. */
  readonly text: string;
  /** Whether `data` can travel as structured content, which every protocol revision accepts as an object only. */
  readonly structured: boolean;
}

type Envelope = Readonly<Record<string, unknown>>;

/** Left for what the estimate cannot know: the digits and ids that the annotation itself adds. */
const HEADROOM = 256;
/** Two levels of two spaces: how deep a row lies in the printed envelope. */
const ROW_INDENT = 4;

/** Characters that are printed to learn the size of a result; what may have more is not printed at all. */
const MOST_PRINTED = 64 * 1024 * 1024;

const print = (data: unknown) => JSON.stringify(data, null, 2) ?? 'null';
/** Null: larger than any result may be, and not printed. */
const printedWithin = (data: unknown): string | null =>
  printedAtMost(data, MOST_PRINTED) > MOST_PRINTED ? null : print(data);
const isEnvelope = (data: unknown): data is Envelope =>
  data !== null && typeof data === 'object' && !Array.isArray(data);

const fitted = (data: unknown, text: string): FittedResult => ({ data, text, structured: isEnvelope(data) });

/** Bytes a row takes inside the printed envelope, its separator and the indentation of each line included. */
function printedBytes(row: unknown): number {
  const text = printedWithin(row);
  if (text === null) return MOST_PRINTED;
  const lines = text.split('\n').length;
  return Buffer.byteLength(text) + lines * ROW_INDENT + ',\n'.length;
}

function keepRows(recovery: Recovery, dropped: string | null, rows: readonly unknown[], cap: number) {
  const estimate = () => {
    const trimmed = sampleOf(rows);
    const perRow = trimmed.reduce((sum, row) => sum + byteLength(row), 0) / Math.max(trimmed.length, 1);
    const budget = cap - Buffer.byteLength(print(recovery.build([], dropped))) - HEADROOM;
    return Math.min(rows.length, Math.floor(budget / Math.max(perRow, 1)));
  };
  const attempt = (kept: number): FittedResult | null => {
    const data = recovery.build(rows.slice(0, kept), dropped);
    const text = printedWithin(data);
    return text !== null && Buffer.byteLength(text) <= cap ? fitted(data, text) : null;
  };
  const whole = attempt(rows.length);
  if (whole) return whole;

  let kept = Math.min(estimate(), rows.length - 1);
  // Row by row by weight first: printing the whole for each step would be quadratic in a result of megabytes.
  let bytes = rows.slice(0, Math.max(kept, 0)).reduce<number>((sum, row) => sum + printedBytes(row), 0);
  for (; kept > 0 && bytes > cap; kept -= 1) bytes -= printedBytes(rows[kept - 1]);
  for (; kept > 0; kept -= 1) {
    const part = attempt(kept);
    if (part) return part;
  }
  return null;
}

/**
 * The result as it will be sent, at most `cap` bytes. Row results of query_class, get_objects and aggregate give up
 * their heaviest field and then their last rows, and say so under `_truncated`; anything else too large is refused.
 * @param takes arguments that the tool declares: a refusal advises no others
 */
export function fitToSize(
  toolName: string,
  data: unknown,
  cap: number = MAX_RESULT_BYTES,
  takes: readonly string[] = [],
): FittedResult | Refusal {
  const text = printedWithin(data);
  const bytes = text === null ? null : Buffer.byteLength(text);
  if (text !== null && bytes !== null && bytes <= cap) return fitted(data, text);

  const recovery = isEnvelope(data) ? recoveryFor(toolName, data, cap) : null;
  if (recovery && recovery.rows.length > 0) {
    const dropped = heaviestField(weighFields(recovery.rows));
    const trimmed = recovery.rows.map((row) => withoutField(row, dropped));
    const kept = keepRows(recovery, dropped, trimmed, cap);
    if (kept) return kept;
  }
  return oversizeRefusal(bytes, cap, partsOf(data), { name: toolName, takes });
}

/** Members under which built-in tools answer many of something, and whether these are rows. */
const LISTS = [
  ['results', true],
  ['samples', true],
  ['groups', false],
  ['values', false],
  ['chunks', false],
  ['suggestions', false],
] as const;

/** What a built-in's envelope is made of, wherever it keeps it. Formatted text has columns but no rows. */
function partsOf(data: unknown): OversizeParts | null {
  if (!isEnvelope(data) || typeof data['output'] === 'string') return null;
  const className = typeof data['class_name'] === 'string' ? data['class_name'] : null;
  for (const [member, rows] of LISTS) {
    const entries = data[member];
    if (Array.isArray(entries)) return { className, entries, rows };
  }
  const { objects, object } = data;
  if (isEnvelope(objects)) return { className, entries: Object.values(objects), rows: true };
  return isEnvelope(object) ? { className, entries: [object], rows: true } : null;
}
