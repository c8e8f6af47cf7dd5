import { setImmediate as nextTurn } from 'node:timers/promises';
import { type AbstractCursor, BSON, type BSONSerializeOptions, type Document } from 'mongodb';
import {
  ANSWER_MEMORY,
  type AnswerInFlight,
  type AnswerLeft,
  type AnswerMemory,
  MIN_VALUE_BYTES,
  type OperationContext,
} from '#data';
import {
  CursorBatches,
  type DocumentBatches,
  openRead,
  type PipelineRead,
  type ReadLimits,
} from '../connection/document-reads.js';
import type { MongoConnection } from '../connection/mongo-connection.js';

const ANY_VALUE = { bsonRegExp: true, validation: { utf8: false } } as const;

/**
 * A stored document, whatever another program wrote: a pattern that JavaScript cannot compile stays data, and bytes that are
 * not UTF-8 become U+FFFD. Otherwise one document would make all others of an answer unreadable.
 * @throws BSONError for bytes that are not BSON
 */
export function readDocument(bytes: Uint8Array, bson?: BSONSerializeOptions): Document {
  return BSON.deserialize(bytes, { ...bson, ...ANY_VALUE });
}

/** The 32-bit whole number at a place, as BSON stores it. */
function int32At(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

/** Types of BSON values that this code distinguishes. */
const BSON_TYPE = {
  double: 0x01,
  text: 0x02,
  document: 0x03,
  list: 0x04,
  boolean: 0x08,
  date: 0x09,
  null: 0x0a,
  objectId: 0x07,
  int32: 0x10,
  int64: 0x12,
} as const;

/** Bytes of a value. @throws RangeError for a type that BSON does not have */
export function valueSize(bytes: Uint8Array, type: number, at: number): number {
  switch (type) {
    case 0x02: // text
    case 0x0d: // code
    case 0x0e: // symbol
      return 4 + int32At(bytes, at);
    case 0x10: // 32-bit number
      return 4;
    case 0x01: // double
    case 0x09: // date
    case 0x11: // time stamp
    case 0x12: // 64-bit number
      return 8;
    case 0x03: // document
    case 0x04: // list
    case 0x0f: // code with scope
      return int32At(bytes, at);
    case 0x05: // bytes
      return 5 + int32At(bytes, at);
    case 0x06: // undefined
    case 0x0a: // null
    case 0x7f: // largest key
    case 0xff: // smallest key
      return 0;
    case 0x07: // ObjectId
      return 12;
    case 0x08: // boolean
      return 1;
    case 0x0b: // regular expression
      return afterName(bytes, afterName(bytes, at)) - at;
    case 0x0c: // reference
      return 4 + int32At(bytes, at) + 12;
    case 0x13: // decimal
      return 16;
    default:
      throw new RangeError(`no BSON type ${type}`);
  }
}

/** The place after a name and the zero byte that ends it. */
export function afterName(bytes: Uint8Array, at: number): number {
  const end = bytes.indexOf(0, at);
  return end < 0 ? bytes.length : end + 1;
}

/**
 * The first document of a pipeline that returns at most one. Its size is not limited: the caller's pipeline makes it small.
 */
export async function readOne(
  connection: MongoConnection,
  read: PipelineRead,
  limits: ReadLimits,
): Promise<Document | null> {
  const batches = openRead(connection, read, limits);
  try {
    const [first] = await batches.next();
    return first ? readDocument(first) : null;
  } finally {
    await batches.close();
  }
}

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
