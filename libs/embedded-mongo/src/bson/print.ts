import { Decimal128, Double, EJSON, Int32, Long, ObjectId } from 'bson';
import { isDocument } from './document.js';

/** How a value reads inside an error text. */
export function printValue(value: unknown): string {
  if (value === undefined) return 'missing';
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value !== 'object' || value === null) return String(value as number | boolean | null);
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[ ${value.map(printValue).join(', ')} ]`;
  if (value instanceof ObjectId) return `ObjectId('${value.toHexString()}')`;
  if (value instanceof Date) return `new Date(${Number(value)})`;
  if (
    value instanceof Double ||
    value instanceof Int32 ||
    value instanceof Long ||
    value instanceof Decimal128
  ) {
    return value.toString();
  }
  if (!isDocument(value)) return EJSON.stringify(value);
  const fields = Object.keys(value).map((key) => `${key}: ${printValue(value[key])}`);
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}
