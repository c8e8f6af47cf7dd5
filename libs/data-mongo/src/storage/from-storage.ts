import {
  Binary,
  BSONRegExp,
  Decimal128,
  type Document,
  Double,
  Int32,
  Long,
  ObjectId,
  Timestamp,
} from 'mongodb';
import type { ParseRow } from '#data';
import type { FieldSchema } from '#policy';
import { columnsToAcl } from './access-lists.js';
import { parsePointerString } from './object-ids.js';
import { isPlainObject, setOwn } from './own-property.js';
import { isPointerColumn, type StorageNames } from './storage-names.js';

export type DateForm = 'typed' | 'text';

/** A number when the conversion is exact, else the digits as text: a rounded number would be a wrong answer. */
function exactNumber(digits: string): number | string {
  const number = Number(digits);
  if (Number.isInteger(number) && !Number.isSafeInteger(number)) return digits;
  const normal = (text: string) => Decimal128.fromString(text).toString();
  try {
    return Number.isFinite(number) && sameDecimal(normal(String(number)), normal(digits)) ? number : digits;
  } catch {
    return digits;
  }
}

/** Equal values compare equal, whatever their trailing zeros and exponents. */
function sameDecimal(left: string, right: string): boolean {
  return canonicalDigits(left) === canonicalDigits(right);
}

function canonicalDigits(decimal: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:E([+-]?\d+))?$/i.exec(decimal);
  if (!match) return decimal;
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  const digits = (whole + fraction).replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  if (significant === '') return '0';
  const scale = Number(exponent) - fraction.length + (digits.length - significant.length);
  return `${sign}${significant}e${scale}`;
}

function geoPoint(pair: readonly unknown[]): ParseRow {
  return { __type: 'GeoPoint', latitude: pair[1], longitude: pair[0] };
}

const isPair = (value: unknown): value is [number, number] =>
  Array.isArray(value) && value.length === 2 && value.every((entry) => typeof entry === 'number');

/** Parse's own form of a GeoJSON point or polygon; other geometries stay as they are. */
function fromGeoJson(value: Readonly<Record<string, unknown>>): ParseRow | null {
  if (Object.keys(value).length !== 2) return null;
  const { type, coordinates } = value;
  if (type === 'Point' && isPair(coordinates)) return geoPoint(coordinates);
  if (type !== 'Polygon' || !Array.isArray(coordinates) || coordinates.length !== 1) return null;
  const ring: unknown = coordinates[0];
  if (!Array.isArray(ring) || !ring.every(isPair)) return null;
  return { __type: 'Polygon', coordinates: ring.map(([longitude, latitude]) => [latitude, longitude]) };
}

function fromBsonType(value: object): unknown {
  if (value instanceof Long) return exactNumber(value.toString());
  if (value instanceof Decimal128) return exactNumber(value.toString());
  if (value instanceof Double || value instanceof Int32) return value.valueOf();
  if (value instanceof ObjectId) return value.toHexString();
  if (value instanceof Binary)
    return { __type: 'Bytes', base64: Buffer.from(value.value()).toString('base64') };
  if (value instanceof Timestamp) return value.toBigInt().toString();
  if (value instanceof RegExp) return value.source;
  if (value instanceof BSONRegExp) return value.pattern;
  return null;
}

/** A stored value as JSON, at any depth. `onKey` may exclude keys of nested objects. */
export function valueFromStorage(
  value: unknown,
  dates: DateForm,
  keepKey?: (key: string) => boolean,
): unknown {
  if (typeof value === 'bigint') return exactNumber(value.toString());
  if (typeof value !== 'object' || value === null) return value ?? null;
  if (Array.isArray(value)) return value.map((entry) => valueFromStorage(entry, dates, keepKey));
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) return null;
    return dates === 'text' ? value.toISOString() : { __type: 'Date', iso: value.toISOString() };
  }
  if (!isPlainObject(value)) return fromBsonType(value);
  const place = fromGeoJson(value);
  if (place) return place;
  const converted: ParseRow = {};
  for (const [key, member] of Object.entries(value)) {
    if (keepKey && !keepKey(key)) continue;
    // The `iso` member of a typed date that was stored whole is text already.
    const text = key === 'iso' && value['__type'] === 'Date' && member instanceof Date;
    setOwn(converted, key, text ? member.toISOString() : valueFromStorage(member, dates, keepKey));
  }
  return converted;
}

/** Columns whose stored form only the schema distinguishes from plain text and arrays. */
export function columnFromStorage(
  value: unknown,
  field: FieldSchema | undefined,
  dates: DateForm,
  keepKey?: (key: string) => boolean,
): unknown {
  if (field?.type === 'GeoPoint' && isPair(value)) return geoPoint(value);
  if (field?.type === 'File' && typeof value === 'string') return { __type: 'File', name: value };
  if (field?.type === 'Bytes' && typeof value === 'string') return { __type: 'Bytes', base64: value };
  return valueFromStorage(value, dates, keepKey);
}

const isoText = (value: unknown): unknown => {
  const converted = valueFromStorage(value, 'text');
  return typeof converted === 'number' ? new Date(converted).toISOString() : converted;
};

/**
 * Converts a document to the row that Parse Server would return. Parse's internal columns are removed.
 * @param wanted the requested fields; absent: all. Only relations depend on it, because they have no column
 */
export function documentToRow(
  document: Document,
  names: StorageNames,
  wanted?: ReadonlySet<string>,
): ParseRow {
  const row: ParseRow = {};
  if ('_id' in document) row['objectId'] = idText(document['_id']);
  for (const [column, value] of Object.entries(document)) {
    if (column === '_created_at') row['createdAt'] = isoText(value);
    else if (column === '_updated_at') row['updatedAt'] = isoText(value);
    else if (isPointerColumn(column)) {
      const pointer = parsePointerString(value);
      if (pointer) setOwn(row, names.fieldOf(column), pointer);
    } else if (!column.startsWith('_') || names.field(names.fieldOf(column))) {
      setReadable(row, column, value, names);
    }
  }
  const acl = columnsToAcl(document);
  if (acl) row['ACL'] = acl;
  for (const [field, className] of names.relations) {
    if (!wanted || wanted.has(field)) setOwn(row, field, { __type: 'Relation', className });
  }
  return row;
}

function setReadable(row: ParseRow, column: string, value: unknown, names: StorageNames): void {
  const field = names.fieldOf(column);
  if (column === '_id' || column === '_session_token') return;
  setOwn(row, field, columnFromStorage(value, names.field(field), 'typed'));
}

/** Ids are text in Parse, whatever type the database stores. */
export function idText(id: unknown): string {
  return id instanceof ObjectId ? id.toHexString() : String(id);
}
