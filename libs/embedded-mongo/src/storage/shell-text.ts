import { Binary, Decimal128, Double, Long, ObjectId, Timestamp } from 'bson';
import { bsonTag, type Document } from '../bson/document.js';

/** A value as MongoDB's messages and explain output write it: `{ a: "x", _id: ObjectId('…') }`. */
export function shellText(value: unknown): string {
  if (value === undefined) return 'undefined';
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : numberWord(value);
  if (typeof value === 'string') return JSON.stringify(value);
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[ ${value.map(shellText).join(', ')} ]`;
  if (value instanceof Date) return `new Date(${value.getTime()})`;
  if (value instanceof ObjectId) return `ObjectId('${value.toHexString()}')`;
  if (value instanceof Long) return value.toString();
  if (value instanceof Double)
    return Number.isInteger(value.value) ? `${value.value}.0` : String(value.value);
  if (value instanceof Decimal128) return `NumberDecimal("${value.toString()}")`;
  if (value instanceof Timestamp) return `Timestamp(${value.t}, ${value.i})`;
  if (value instanceof Binary) return `BinData(${value.sub_type}, ${value.toString('base64')})`;
  const tag = bsonTag(value as object);
  if (tag !== undefined) return tag;
  const fields = Object.entries(value as Document).map(([name, item]) => `${name}: ${shellText(item)}`);
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}

const numberWord = (value: number): string =>
  Number.isNaN(value) ? 'nan.0' : value > 0 ? 'inf.0' : '-inf.0';
