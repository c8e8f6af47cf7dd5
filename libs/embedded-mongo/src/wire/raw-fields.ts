import { mongoError, type MongoError } from '../errors.js';
import { ElementType as T } from './element-type.js';

/** Where one top-level element of an encoded document lies. */
export interface RawField {
  readonly name: string;
  readonly type: number;
  /** Offset of the type byte. */
  readonly start: number;
  /** Offset of the value, after the name. */
  readonly value: number;
  /** Offset of the first byte after the element. */
  readonly end: number;
}

const createMalformed = (): MongoError => mongoError(22, 'malformed BSON document');

function valueEnd(bytes: Buffer, type: number, at: number, limit: number): number {
  switch (type) {
    case T.undefined:
    case T.null:
    case T.maxKey:
    case T.minKey:
      return at;
    case T.boolean:
      return at + 1;
    case T.int32:
      return at + 4;
    case T.double:
    case T.date:
    case T.timestamp:
    case T.int64:
      return at + 8;
    case T.objectId:
      return at + 12;
    case T.decimal:
      return at + 16;
    case T.regex:
      return cstringEnd(bytes, cstringEnd(bytes, at, limit), limit);
    case T.string:
    case T.code:
    case T.symbol:
      return at + 4 + lengthAt(bytes, at, limit, 1);
    case T.binary:
      return at + 5 + lengthAt(bytes, at, limit, 0);
    case T.dbPointer:
      return at + 4 + lengthAt(bytes, at, limit, 1) + 12;
    case T.document:
    case T.array:
    case T.codeWithScope:
      return at + lengthAt(bytes, at, limit, 5);
    default:
      throw createMalformed();
  }
}

function lengthAt(bytes: Buffer, at: number, limit: number, least: number): number {
  if (at + 4 > limit) throw createMalformed();
  const length = bytes.readInt32LE(at);
  if (length < least || length > limit - at) throw createMalformed();
  return length;
}

function cstringEnd(bytes: Buffer, at: number, limit: number): number {
  const zero = bytes.indexOf(0, at);
  if (zero < 0 || zero >= limit) throw createMalformed();
  return zero + 1;
}

/** Walks the top-level elements of one encoded document without decoding them. */
export function* rawFields(bytes: Buffer): Generator<RawField> {
  const limit = bytes.length - 1;
  if (bytes.length < 5 || bytes.readInt32LE(0) !== bytes.length || bytes[limit] !== 0)
    throw createMalformed();
  let start = 4;
  while (start < limit) {
    const type = bytes[start] ?? 0;
    const value = cstringEnd(bytes, start + 1, limit);
    const end = valueEnd(bytes, type, value, limit);
    if (end > limit) throw createMalformed();
    yield { name: bytes.toString('utf8', start + 1, value - 1), type, start, value, end };
    start = end;
  }
}

/** The encoded documents of the array field `name`; undefined when the field is missing or holds something else. */
export function readRawDocuments(bytes: Buffer, name: string): Buffer[] | undefined {
  for (const field of rawFields(bytes)) {
    if (field.name !== name) continue;
    if (field.type !== T.array) return undefined;
    const documents: Buffer[] = [];
    const array = bytes.subarray(field.value, field.end);
    for (const item of rawFields(array)) {
      if (item.type !== T.document) return undefined;
      documents.push(array.subarray(item.value, item.end));
    }
    return documents;
  }
  return undefined;
}

/** The encoded document in the field `name`; undefined when the field is missing or holds something else. */
export function readRawDocument(bytes: Buffer, name: string): Buffer | undefined {
  for (const field of rawFields(bytes)) {
    if (field.name === name)
      return field.type === T.document ? bytes.subarray(field.value, field.end) : undefined;
  }
  return undefined;
}
