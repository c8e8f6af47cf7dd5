import { BSONType, onDemand } from 'bson';
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

/** An already encoded document: the encoder copies its bytes instead of encoding it again. */
export class RawBson {
  constructor(readonly bytes: Buffer) {}
}

/** Errors: 10334. */
export function refuseLarge({ length }: Buffer, most: number): void {
  if (length > most)
    throw mongoError(10334, `BSONObj size: ${length} is invalid. Size must be between 0 and ${most}`);
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
    if (field.type !== BSONType.array) return undefined;
    const documents: Buffer[] = [];
    const array = bytes.subarray(field.value, field.end);
    for (const item of rawFields(array)) {
      if (item.type !== BSONType.object) return undefined;
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
      return field.type === BSONType.object ? bytes.subarray(field.value, field.end) : undefined;
  }
  return undefined;
}
