import { Binary, Decimal128, Double, Int32, Long, ObjectId, Timestamp } from 'bson';
import { bsonTag, type Document } from './document.js';

/** A string as its code points: an emoji is one, where JavaScript's own length counts two. */
export const codePoints = (text: string): string[] => Array.from(text);

/** Where a value is cut short: how deep it is shown, how many members of it, and how many letters of a text. */
const short = { depth: 5, items: 20, text: 200 };
const whole: typeof short = { depth: Infinity, items: Infinity, text: Infinity };

/** A value as MongoDB's messages and explain output write it: `{ a: "x", _id: ObjectId('…') }`. */
export const shellText = (value: unknown): string => write(value, whole);

/** The same inside an error text; large values are cut short. */
export const printValue = (value: unknown): string => (value === undefined ? 'missing' : write(value, short));

function write(value: unknown, most: typeof short): string {
  if (value === undefined) return 'undefined';
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : numberWord(value);
  if (typeof value === 'string') return JSON.stringify(shorten(value, most));
  if (value instanceof Date) return `new Date(${value.getTime()})`;
  if (value instanceof ObjectId) return `ObjectId('${value.toHexString()}')`;
  if (value instanceof Timestamp) return `Timestamp(${value.t}, ${value.i})`;
  if (value instanceof Long || value instanceof Int32) return value.toString();
  if (value instanceof Double)
    return Number.isInteger(value.value) ? `${value.value}.0` : String(value.value);
  if (value instanceof Decimal128) return `NumberDecimal("${value.toString()}")`;
  if (value instanceof Binary)
    return `BinData(${value.sub_type}, ${shorten(value.toString('base64'), most)})`;
  const tag = bsonTag(value as object);
  if (tag !== undefined) return tag;
  if (most.depth < 0) return '...';
  const inner = { ...most, depth: most.depth - 1 };
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const members = Array.isArray(value)
    ? value.slice(0, most.items).map((item) => write(item, inner))
    : Object.keys(value as Document)
        .slice(0, most.items)
        .map((name) => `${shorten(name, most)}: ${write((value as Document)[name], inner)}`);
  if (Object.keys(value as object).length > most.items) members.push('...');
  return members.length === 0 ? `${open}${close}` : `${open} ${members.join(', ')} ${close}`;
}

const numberWord = (value: number): string =>
  Number.isNaN(value) ? 'nan.0' : value > 0 ? 'inf.0' : '-inf.0';

const shorten = (text: string, most: typeof short): string =>
  text.length <= most.text ? text : `${text.slice(0, most.text)}...`;
