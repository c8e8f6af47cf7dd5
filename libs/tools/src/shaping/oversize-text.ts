import type { ParseRow } from '#data';
import { Refused } from '#agent';
import { declaredNames } from '../json-schema.js';
import type { ToolCall } from '../tool.js';
import { MAX_RESULT_BYTES } from './fit-to-size.js';
import { oversizeRefusal } from './oversize-refusal.js';
import { type Column, valueAt } from './text-formats.js';

/** Bytes that one character of a text can take in the answer: `\u0000`. */
const MOST_PER_CHARACTER = 6;
const ENVELOPE = 1024;

/**
 * An answer whose rows are one text. Once they are text nobody could tell which column is the heavy one.
 * @returns the envelope
 * @throws Refused for one that is too large, with its heaviest columns
 */
export function fittingText<
  Envelope extends { readonly output: string; readonly headers: readonly string[] },
>(
  envelope: Envelope,
  rows: readonly ParseRow[],
  columns: readonly Column[],
  { tool }: Pick<ToolCall, 'tool'>,
  cap = MAX_RESULT_BYTES,
): Envelope {
  if (envelope.output.length * MOST_PER_CHARACTER + ENVELOPE <= cap) return envelope;
  const bytes = Buffer.byteLength(JSON.stringify(envelope, null, 2));
  if (bytes <= cap) return envelope;
  const entries = rows.map((row) =>
    Object.fromEntries(columns.map(({ path }) => [path, valueAt(row, path)])),
  );
  const advised = { name: tool.name, takes: declaredNames(tool.inputSchema) };
  throw new Refused(oversizeRefusal(bytes, cap, { className: null, entries, rows: true }, advised));
}
