import { Binary, type Document } from 'mongodb';
import { UnstorableValue } from '../errors.js';
import { aclToColumns } from './access-lists.js';
import { pointerString, pointerTo } from './object-ids.js';
import { isPlainObject, setOwn } from './own-property.js';
import { pointerColumn, type StorageNames } from './storage-names.js';

type Typed = Readonly<Record<string, unknown>> & { readonly __type: string };

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export function isTyped(value: unknown): value is Typed {
  return isPlainObject(value) && typeof value['__type'] === 'string';
}

/** @throws UnstorableValue when the text is not a date */
function dateOf(iso: unknown): Date {
  const date = iso instanceof Date ? iso : new Date(typeof iso === 'string' ? iso : Number.NaN);
  if (Number.isNaN(date.getTime())) throw new UnstorableValue('', 'not an ISO 8601 date');
  return date;
}

/** `[longitude, latitude]`, the order that MongoDB requires. */
export function coordinatesOf(point: unknown): [number, number] {
  const { latitude, longitude } = (point ?? {}) as { latitude?: unknown; longitude?: unknown };
  if (typeof latitude !== 'number' || typeof longitude !== 'number')
    throw new UnstorableValue('', 'a GeoPoint needs numeric latitude and longitude');
  if (!(Math.abs(latitude) <= 90) || !(Math.abs(longitude) <= 180))
    throw new UnstorableValue('', 'latitude must be within ±90 and longitude within ±180');
  return [longitude, latitude];
}

function ringOf(coordinates: unknown): [number, number][] {
  if (!Array.isArray(coordinates)) throw new UnstorableValue('', 'a Polygon needs coordinates');
  const ring = coordinates.map((pair) =>
    coordinatesOf(Array.isArray(pair) ? { latitude: pair[0], longitude: pair[1] } : pair),
  );
  const first = ring[0];
  const last = ring.at(-1);
  if (first && last && (first[0] !== last[0] || first[1] !== last[1])) ring.push([...first]);
  if (new Set(ring.map(String)).size < 3)
    throw new UnstorableValue('', 'a Polygon needs three different vertices');
  return ring;
}

function bytesOf(base64: unknown): Binary {
  if (typeof base64 !== 'string' || !BASE64.test(base64))
    throw new UnstorableValue('', 'Bytes must be base64 text');
  return new Binary(Buffer.from(base64, 'base64'));
}

function identifiersOf({ className, objectId }: Typed): [string, string] {
  if (typeof className !== 'string' || typeof objectId !== 'string' || className === '' || objectId === '')
    throw new UnstorableValue('', 'a Pointer needs className and objectId');
  return [className, objectId];
}

/** The value that a column stores for a typed value. */
function typedColumnValue(value: Typed): unknown {
  switch (value.__type) {
    case 'Pointer':
      return pointerString(...identifiersOf(value));
    case 'Date':
      return dateOf(value['iso']);
    case 'Bytes':
      return bytesOf(value['base64']);
    case 'GeoPoint':
      return coordinatesOf(value);
    case 'Polygon':
      return { type: 'Polygon', coordinates: [ringOf(value['coordinates'])] };
    case 'File':
      if (typeof value['name'] !== 'string') throw new UnstorableValue('', 'a File needs a name');
      return value['name'];
    default:
      throw new UnstorableValue('', `a ${value.__type} cannot be stored in a column`);
  }
}

/** Inside arrays and objects, pointers, GeoPoints and files keep their JSON form; dates and bytes do not. */
function typedNestedValue(value: Typed): unknown {
  if (value.__type === 'Pointer') return pointerTo(...identifiersOf(value));
  if (value.__type === 'Date') return dateOf(value['iso']);
  if (value.__type === 'Bytes') return bytesOf(value['base64']);
  return nestedObject(value);
}

function nestedObject(value: Readonly<Record<string, unknown>>): Document {
  const stored: Document = {};
  for (const [key, member] of Object.entries(value)) {
    if (key.includes('$') || key.includes('.'))
      throw new UnstorableValue(key, "nested keys must not contain '$' or '.'");
    setOwn(
      stored,
      key,
      at(key, () => nestedToStorage(member)),
    );
  }
  return stored;
}

function at<T>(place: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof UnstorableValue ? error.under(place) : error;
  }
}

/** A value inside an array or object column. @throws UnstorableValue */
export function nestedToStorage(value: unknown): unknown {
  if (Array.isArray(value))
    return value.map((entry, index) => at(String(index), () => nestedToStorage(entry)));
  if (isTyped(value)) return typedNestedValue(value);
  if (isPlainObject(value)) return nestedObject(value);
  return scalarToStorage(value);
}

/** The value of a column. @throws UnstorableValue */
export function columnToStorage(value: unknown): unknown {
  return isTyped(value) ? typedColumnValue(value) : nestedToStorage(value);
}

function scalarToStorage(value: unknown): unknown {
  const storable =
    value === null || value instanceof Date || ['string', 'number', 'boolean'].includes(typeof value);
  if (!storable) throw new UnstorableValue('', `a value of type ${typeof value} cannot be stored`);
  return value;
}

/** The column name and stored value of one field. */
export function fieldToStorage(field: string, value: unknown, names: StorageNames): [string, unknown] {
  return at(field, () => {
    if (field === 'createdAt' || field === 'updatedAt')
      return [names.column(field), dateOf(isTyped(value) ? value['iso'] : value)];
    const undeclaredPointer = isTyped(value) && value.__type === 'Pointer' && !names.field(field);
    return [undeclaredPointer ? pointerColumn(field) : names.column(field), columnToStorage(value)];
  });
}

/** Converts a row in Parse JSON to its document. Relations are stored in join collections and have no column. */
export function rowToDocument(row: Readonly<Record<string, unknown>>, names: StorageNames): Document {
  const document: Document = {};
  for (const [field, value] of Object.entries(row)) {
    if (value === undefined || (isTyped(value) && value.__type === 'Relation')) continue;
    if (field === 'ACL') {
      Object.assign(document, aclToColumns(value));
      continue;
    }
    const [column, stored] = fieldToStorage(field, value, names);
    setOwn(document, column, stored);
  }
  return document;
}
