import { Binary, type BSONRegExp, Code, ObjectId, Timestamp } from 'bson';
import { encodeDocument } from '../wire/encode.js';
import type { Collation } from './collation.js';
import { type Document, isDocument } from './document.js';
import { compareNumbers } from './number.js';
import { typeRank } from './type-name.js';

/** Full BSON order. A missing value (undefined) comes before null; a sort treats the two as one. */
export function compareValues(a: unknown, b: unknown, collation?: Collation): number {
  if (a === b) return 0;
  const rank = typeRank(a);
  const other = typeRank(b);
  if (rank !== other) return rank < other ? -1 : 1;
  switch (rank) {
    case 10:
      return compareNumbers(a, b);
    case 15:
      return collation ? collation.compare(String(a), String(b)) : compareStrings(String(a), String(b));
    case 20:
      return compareDocuments(a as Document, b as Document, collation);
    case 25:
      return compareArrays(a as unknown[], b as unknown[], collation);
    case 30:
      return compareBinaries(a as Binary | Uint8Array, b as Binary | Uint8Array);
    case 35:
      return Buffer.compare((a as ObjectId).id, (b as ObjectId).id);
    case 40:
    case 45:
      return sign(Number(a) - Number(b)) || Number(Number.isNaN(Number(b))) - Number(Number.isNaN(Number(a)));
    case 47:
      return sign((a as Timestamp).t - (b as Timestamp).t) || sign((a as Timestamp).i - (b as Timestamp).i);
    case 50:
      return (
        compareStrings((a as BSONRegExp).pattern, (b as BSONRegExp).pattern) ||
        compareStrings((a as BSONRegExp).options, (b as BSONRegExp).options)
      );
    case 60:
    case 65:
      return (
        compareStrings((a as Code).code, (b as Code).code) ||
        compareValues((a as Code).scope ?? null, (b as Code).scope ?? null)
      );
    default:
      return 0;
  }
}

export const valuesEqual = (a: unknown, b: unknown, collation?: Collation): boolean =>
  compareValues(a, b, collation) === 0;

const surrogate = /[\ud800-\udfff]/;

/** UTF-8 byte order, which differs from JS order only where surrogates meet the top of the BMP. */
export function compareStrings(a: string, b: string): number {
  if (a === b) return 0;
  if (surrogate.test(a) || surrogate.test(b))
    return Buffer.compare(Buffer.from(a), Buffer.from(b)) || (a < b ? -1 : 1);
  return a < b ? -1 : 1;
}

function compareDocuments(a: Document, b: Document, collation?: Collation): number {
  const keysA = Object.keys(a);
  const keysB = Object.keys(b);
  const length = Math.min(keysA.length, keysB.length);
  for (let i = 0; i < length; i++) {
    const keyA = keysA[i] as string;
    const keyB = keysB[i] as string;
    const result =
      sign(typeRank(a[keyA]) - typeRank(b[keyB])) ||
      compareStrings(keyA, keyB) ||
      compareValues(a[keyA], b[keyB], collation);
    if (result !== 0) return result;
  }
  return sign(keysA.length - keysB.length);
}

function compareArrays(a: unknown[], b: unknown[], collation?: Collation): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const result = compareValues(a[i], b[i], collation);
    if (result !== 0) return result;
  }
  return sign(a.length - b.length);
}

function compareBinaries(a: Binary | Uint8Array, b: Binary | Uint8Array): number {
  const [x, y] = [storedBytes(a), storedBytes(b)];
  return sign(x.length - y.length) || sign(subType(a) - subType(b)) || Buffer.compare(x, y);
}

const subType = (value: Binary | Uint8Array): number => (value instanceof Uint8Array ? 0 : value.sub_type);

/** The bytes a Binary holds, without its spare capacity. */
export function binaryBytes(value: Binary | Uint8Array): Uint8Array {
  return value instanceof Uint8Array ? value : value.buffer.subarray(0, value.position);
}

/** With the length that the old binary subtype has before its bytes. */
export function storedBytes(value: Binary | Uint8Array): Uint8Array {
  const bytes = binaryBytes(value);
  if (subType(value) !== Binary.SUBTYPE_BYTE_ARRAY) return bytes;
  const length = Buffer.alloc(4);
  length.writeInt32LE(bytes.length);
  return Buffer.concat([length, bytes]);
}

const sign = (value: number): number => (value < 0 ? -1 : value > 0 ? 1 : 0);

/** True when two values are the same bytes on the wire: same types, same field order. */
export function identical(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (isDocument(a) && isDocument(b)) {
    const names = Object.keys(b);
    return (
      Object.keys(a).length === names.length &&
      Object.keys(a).every((name, i) => name === names[i] && identical(a[name], b[name]))
    );
  }
  return encodeDocument({ a }).equals(encodeDocument({ a: b }));
}
