import { onDemand } from 'bson';
import { mongoError } from '../errors.js';
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
