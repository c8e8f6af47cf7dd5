import { setImmediate as nextTurn } from 'node:timers/promises';
import { type AbstractCursor, BSON, type Document } from 'mongodb';
import {
  ANSWER_MEMORY,
  type AnswerLeft,
  type AnswerMemory,
  MIN_VALUE_BYTES,
  type OperationContext,
} from '#data';

/** Bytes that are converted to objects before the event loop runs other work. */
const SLICE = 512 * 1024;

interface BoundedRead {
  readonly operation: Pick<OperationContext, 'maxTimeMS' | 'signal' | 'principal'>;
  /** Bytes to reserve before the size of the answer is known. */
  readonly expected: number;
  /** Bytes that may still be read; the read reduces it. */
  readonly left: AnswerLeft;
}

/**
 * Reads a cursor to its end and converts its documents to rows one by one, within the limits of answers.
 * @param cursor opened with `raw: true`: a document that is not converted never becomes an object
 * @throws StoreError `too_large`, `busy`
 */
export async function boundedRows<Row>(
  cursor: AbstractCursor<unknown>,
  { operation, expected, left }: BoundedRead,
  toRow: (document: Document) => Row,
  memory: AnswerMemory = ANSWER_MEMORY,
): Promise<Row[]> {
  const { principal, maxTimeMS, signal } = operation;
  const answer = await memory.begin({ principal, maxTimeMS, signal, expected });
  try {
    const documents: Uint8Array[] = [];
    for (let first = await cursor.next(); first !== null; first = await cursor.next()) {
      const batch = [first, ...cursor.readBufferedDocuments()] as Uint8Array[];
      const size = batch.reduce((sum, { byteLength }) => sum + byteLength, 0);
      answer.arrived(size, () => batch.reduce((sum, document) => sum + bsonWeight(document), 0), left.bytes);
      for (const document of batch) documents.push(document);
      if (cursor.id?.isZero() === false) answer.assertRoom();
    }
    left.bytes -= answer.bytes;
    return await answer.become(() => rowsOf(documents, toRow));
  } finally {
    answer.end();
    if (!cursor.closed) await cursor.close().catch(() => undefined);
  }
}

/**
 * Small answers are converted without a pause. Of large answers, the bytes are released as soon as they have become a row.
 */
function rowsOf<Row>(documents: Uint8Array[], toRow: (document: Document) => Row): Row[] | Promise<Row[]> {
  const size = documents.reduce((sum, { byteLength }) => sum + byteLength, 0);
  if (size > SLICE) return rowsInSlices(documents, toRow);
  return documents.map((bytes) => toRow(BSON.deserialize(bytes)));
}

async function rowsInSlices<Row>(
  documents: Uint8Array[],
  toRow: (document: Document) => Row,
): Promise<Row[]> {
  const rows: Row[] = [];
  let since = 0;
  for (const bytes of documents) {
    rows.push(toRow(BSON.deserialize(bytes)));
    since += bytes.byteLength;
    if (since < SLICE) continue;
    since = 0;
    await nextTurn();
  }
  return rows;
}

/** Bytes of a value by its BSON type, where the type fixes them. */
const FIXED: Readonly<Record<number, number>> = {
  0x01: 8,
  0x06: 0,
  0x07: 12,
  0x08: 1,
  0x09: 8,
  0x0a: 0,
  0x10: 4,
  0x11: 8,
  0x12: 8,
  0x13: 16,
  0x7f: 0,
  0xff: 0,
};

const DOCUMENT = 0x03;
const ARRAY = 0x04;
const BINARY = 0x05;
const REGEX = 0x0b;
const DB_POINTER = 0x0c;
const CODE_WITH_SCOPE = 0x0f;
/** String, code and symbol: a length, then the text. */
const TEXTS = new Set([0x02, 0x0d, 0x0e]);

/** Bytes that a BSON document counts for: its own, where each value has at least `MIN_VALUE_BYTES`. Makes no objects. */
export function bsonWeight(bytes: Uint8Array): number {
  return weightAt(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), bytes, 0);
}

function weightAt(view: DataView, bytes: Uint8Array, start: number): number {
  const end = start + view.getInt32(start, true) - 1;
  let weight = MIN_VALUE_BYTES;
  let at = start + 4;
  while (at < end) {
    const from = at;
    const type = bytes[at] ?? 0;
    at = afterText(bytes, at + 1);
    const size = valueSize(view, bytes, type, at);
    if (type === DOCUMENT || type === ARRAY) weight += weightAt(view, bytes, at) + (at - from);
    else weight += Math.max(at + size - from, MIN_VALUE_BYTES);
    at += size;
  }
  return weight;
}

function afterText(bytes: Uint8Array, at: number): number {
  const end = bytes.indexOf(0, at);
  return end < 0 ? bytes.length : end + 1;
}

function valueSize(view: DataView, bytes: Uint8Array, type: number, at: number): number {
  const fixed = FIXED[type];
  if (fixed !== undefined) return fixed;
  if (type === DOCUMENT || type === ARRAY || type === CODE_WITH_SCOPE) return view.getInt32(at, true);
  if (TEXTS.has(type)) return 4 + view.getInt32(at, true);
  if (type === BINARY) return 5 + view.getInt32(at, true);
  if (type === REGEX) return afterText(bytes, afterText(bytes, at)) - at;
  if (type === DB_POINTER) return 4 + view.getInt32(at, true) + 12;
  throw new RangeError(`no BSON type ${type}`);
}
