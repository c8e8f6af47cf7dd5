import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AbstractCursor, BSONSerializeOptions, Document } from 'mongodb';
import {
  ANSWER_MEMORY,
  type AnswerInFlight,
  type AnswerLeft,
  type AnswerMemory,
  MIN_VALUE_BYTES,
  type OperationContext,
} from '#data';
import { CursorBatches, type DocumentBatches } from '../connection/document-reads.js';
import { afterName, BSON_TYPE, readDocument, int32At, valueSize } from '../storage/documents.js';

/** Bytes that are converted to objects before the event loop runs other work. */
const SLICE_BYTES = 512 * 1024;

interface BoundedRead {
  readonly operation: Pick<OperationContext, 'maxTimeMS' | 'signal' | 'principal'>;
  /** Bytes to reserve before the size of the answer is known. */
  readonly expected: number;
  /** Bytes that may still be read; the read reduces it. */
  readonly left: AnswerLeft;
  /** How documents become objects. Default: as the driver does. */
  readonly bson?: BSONSerializeOptions;
}

/**
 * Reads documents to their end and converts them to rows one by one, within the limits of answers.
 * @param documents a cursor is opened with `raw: true`: a document that is not converted never becomes an object
 * @throws StoreError `too_large`, `busy`
 */
export function readBoundedRows<Row>(
  documents: DocumentBatches | AbstractCursor<unknown>,
  read: BoundedRead,
  toRow: (document: Document) => Row,
): Promise<Row[]> {
  const batches = 'readBufferedDocuments' in documents ? new CursorBatches(documents) : documents;
  return readBoundedAnswer(batches, read, (found) => toRows(found, toRow, read.bson));
}

/** As `readBoundedRows`, for all documents at once. */
export async function readBoundedAnswer<Answer>(
  batches: DocumentBatches,
  { operation, expected, left }: BoundedRead,
  convert: (documents: Uint8Array[]) => Answer | Promise<Answer>,
  memory: AnswerMemory = ANSWER_MEMORY,
): Promise<Answer> {
  const { principal, maxTimeMS } = operation;
  try {
    const answer = await memory.begin({ principal, maxTimeMS, operation, expected });
    try {
      let documents = await noteArrival(batches, answer, left);
      while (batches.open) {
        answer.assertRoom();
        documents = documents.concat(await noteArrival(batches, answer, left));
      }
      left.bytes -= answer.bytes;
      return await answer.become(() => convert(documents));
    } finally {
      answer.end();
    }
  } finally {
    await batches.close();
  }
}

async function noteArrival(
  batches: DocumentBatches,
  answer: AnswerInFlight,
  left: AnswerLeft,
): Promise<Uint8Array[]> {
  const batch = await batches.next();
  const size = batch.reduce((sum, { byteLength }) => sum + byteLength, 0);
  answer.noteArrival(size, () => batch.reduce((sum, document) => sum + bsonWeight(document), 0), left.bytes);
  return batch;
}

/**
 * Small answers are converted without a pause. Of large answers, the bytes are released as soon as they have become a row.
 */
export function toRows<Row>(
  documents: Uint8Array[],
  toRow: (document: Document) => Row,
  bson?: BSONSerializeOptions,
): Row[] | Promise<Row[]> {
  const size = documents.reduce((sum, { byteLength }) => sum + byteLength, 0);
  if (size > SLICE_BYTES) return rowsInSlices(documents, toRow, bson);
  return documents.map((bytes) => toRow(readDocument(bytes, bson)));
}

async function rowsInSlices<Row>(
  documents: Uint8Array[],
  toRow: (document: Document) => Row,
  bson: BSONSerializeOptions | undefined,
): Promise<Row[]> {
  const rows: Row[] = [];
  let since = 0;
  for (const bytes of documents) {
    rows.push(toRow(readDocument(bytes, bson)));
    since += bytes.byteLength;
    if (since < SLICE_BYTES) continue;
    since = 0;
    await nextTurn();
  }
  return rows;
}

/** Bytes that a BSON document counts for: its own, where each value has at least `MIN_VALUE_BYTES`. Makes no objects. */
export function bsonWeight(bytes: Uint8Array): number {
  return weightAt(bytes, 0);
}

function weightAt(bytes: Uint8Array, start: number): number {
  const end = start + int32At(bytes, start) - 1;
  let weight = MIN_VALUE_BYTES;
  let at = start + 4;
  while (at < end) {
    const from = at;
    const type = bytes[at] ?? 0;
    at = afterName(bytes, at + 1);
    const size = valueSize(bytes, type, at);
    if (type === BSON_TYPE.document || type === BSON_TYPE.list) weight += weightAt(bytes, at) + (at - from);
    else weight += Math.max(at + size - from, MIN_VALUE_BYTES);
    at += size;
  }
  return weight;
}
