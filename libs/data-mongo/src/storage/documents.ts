import { BSON, type BSONSerializeOptions, type Document } from 'mongodb';

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
export function int32At(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

/** Types of BSON values that this code distinguishes. */
export const BSON_TYPE = {
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
