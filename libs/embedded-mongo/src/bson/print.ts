import { Decimal128, Double, EJSON, Int32, Long, ObjectId, Timestamp } from 'bson';
import { isDocument, type Document } from './document.js';

const deepest = 5;
const mostItems = 20;
const longestText = 200;

/** How a value reads inside an error text; large ones are cut short. */
export function printValue(value: unknown): string {
  return print(value, 0);
}

function print(value: unknown, depth: number): string {
  if (value === undefined) return 'missing';
  if (typeof value === 'string') return JSON.stringify(shortenText(value));
  if (typeof value !== 'object' || value === null) return String(value as number | boolean | null);
  if (value instanceof ObjectId) return `ObjectId('${value.toHexString()}')`;
  if (value instanceof Timestamp) return `Timestamp(${value.t}, ${value.i})`;
  if (value instanceof Date) return `new Date(${Number(value)})`;
  if (
    value instanceof Double ||
    value instanceof Int32 ||
    value instanceof Long ||
    value instanceof Decimal128
  ) {
    return value.toString();
  }
  if (!Array.isArray(value) && !isDocument(value)) return shortenText(EJSON.stringify(value));
  if (depth >= deepest) return '...';
  const parts = Array.isArray(value)
    ? value.slice(0, mostItems).map((item) => print(item, depth + 1))
    : fields(value, depth);
  const size = Array.isArray(value) ? value.length : Object.keys(value).length;
  if (size > mostItems) parts.push('...');
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return size === 0 ? `${open}${close}` : `${open} ${parts.join(', ')} ${close}`;
}

const fields = (doc: Document, depth: number): string[] =>
  Object.keys(doc)
    .slice(0, mostItems)
    .map((key) => `${shortenText(key)}: ${print(doc[key], depth + 1)}`);

const shortenText = (text: string): string =>
  text.length <= longestText ? text : `${text.slice(0, longestText)}...`;
