import { setImmediate as nextTurn } from 'node:timers/promises';
import { type AbstractCursor, BSON, type Document } from 'mongodb';
import { ANSWER_MEMORY, type AnswerLeft, type AnswerMemory, type OperationContext } from '#data';
import { bsonWeight } from './bson-weight.js';

/** Bytes that become objects before others have their turn in the event loop. */
const SLICE = 512 * 1024;

export interface BoundedRead {
  readonly operation: Pick<OperationContext, 'maxTimeMS' | 'signal' | 'principal'>;
  /** Bytes to set aside before the answer is known. */
  readonly expected: number;
  /** What may still be read, in bytes; less after the read. */
  readonly left: AnswerLeft;
}

/**
 * Reads a cursor to its end and makes rows of its documents, one by one, within the limits of answers.
 * @param cursor opened with `raw: true`: what is not taken never becomes objects
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

/** Small answers are made without a pause; of large ones the bytes go as soon as they have become a row. */
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
