import { onDemand } from 'bson';
import { mongoError } from '../errors.js';

/** Largest wire message accepted or sent, in bytes (announced in the handshake). */
export const MAX_MESSAGE_BYTES = 48_000_000;
/** Largest stored document, in bytes. */
export const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024;
/** Most write statements in one command. */
export const MAX_WRITE_BATCH = 100_000;
/** Deepest nesting of a stored document. */
export const MAX_DOCUMENT_DEPTH = 100;
/** Deepest nesting of a command, which wraps documents and pipelines. */
export const MAX_COMMAND_DEPTH = 200;

/** BSON element type bytes. */
export const ElementType = {
  double: 0x01,
  string: 0x02,
  document: 0x03,
  array: 0x04,
  binary: 0x05,
  undefined: 0x06,
  objectId: 0x07,
  boolean: 0x08,
  date: 0x09,
  null: 0x0a,
  regex: 0x0b,
  dbPointer: 0x0c,
  code: 0x0d,
  symbol: 0x0e,
  codeWithScope: 0x0f,
  int32: 0x10,
  timestamp: 0x11,
  int64: 0x12,
  decimal: 0x13,
  maxKey: 0x7f,
  minKey: 0xff,
} as const;

/** An already encoded document: the encoder copies its bytes instead of encoding it again. */
export class RawBson {
  constructor(readonly bytes: Buffer) {}
}

/** Where one top-level element of an encoded document lies. */
interface RawField {
  readonly name: string;
  readonly type: number;
  /** Offset of the type byte. */
  readonly start: number;
  /** Offset of the value, after the name. */
  readonly value: number;
  /** Offset of the first byte after the element. */
  readonly end: number;
}

/** The top-level elements of one encoded document, not decoded. Errors: 22. */
export function rawFields(bytes: Buffer): RawField[] {
  try {
    return Array.from(onDemand.parseToElements(bytes), ([type, nameAt, nameLength, value, length]) => ({
      name: bytes.toString('utf8', nameAt, nameAt + nameLength),
      type,
      start: nameAt - 1,
      value,
      end: value + length,
    }));
  } catch {
    throw mongoError(22, 'malformed BSON document');
  }
}

/** The encoded documents of the array field `name`; undefined when the field is missing or holds something else. */
export function readRawDocuments(bytes: Buffer, name: string): Buffer[] | undefined {
  for (const field of rawFields(bytes)) {
    if (field.name !== name) continue;
    if (field.type !== ElementType.array) return undefined;
    const documents: Buffer[] = [];
    const array = bytes.subarray(field.value, field.end);
    for (const item of rawFields(array)) {
      if (item.type !== ElementType.document) return undefined;
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
      return field.type === ElementType.document ? bytes.subarray(field.value, field.end) : undefined;
  }
  return undefined;
}
