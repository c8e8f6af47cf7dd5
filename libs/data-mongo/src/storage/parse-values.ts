import { setOwn } from '#core';
import { randomInt } from 'node:crypto';
import { Binary, type BSONRegExp, Decimal128, type Document, Long, type ObjectId } from 'mongodb';
import type { ParseRow } from '#data';
import { type FieldSchema, isBase64, isPlainObject, isTyped, NON_FINITE, type TypedValue } from '#policy';
import { UnstorableValue, untranslatable } from '../errors.js';
import {
  type ColumnRef,
  type DateForm,
  isPointer,
  isPointerString,
  pointerString,
  pointerTo,
  type ValueForm,
} from './class-storage.js';
import { isLong, isSpelledDouble, WHOLE } from './plain-scalars.js';

/** @throws UnstorableValue when the text is not a date */
export function toDate(iso: unknown): Date {
  const date = iso instanceof Date ? iso : new Date(typeof iso === 'string' ? iso : Number.NaN);
  if (Number.isNaN(date.getTime())) throw new UnstorableValue('', 'not an ISO 8601 date');
  return date;
}

/** `[longitude, latitude]`, the order that MongoDB requires. */
export function toCoordinates(point: unknown): [number, number] {
  const { latitude, longitude } = (point ?? {}) as { latitude?: unknown; longitude?: unknown };
  if (typeof latitude !== 'number' || typeof longitude !== 'number')
    throw new UnstorableValue('', 'a GeoPoint needs numeric latitude and longitude');
  if (!(Math.abs(latitude) <= 90) || !(Math.abs(longitude) <= 180))
    throw new UnstorableValue('', 'latitude must be within ±90 and longitude within ±180');
  return [longitude, latitude];
}

export function toRing(coordinates: unknown): [number, number][] {
  if (!Array.isArray(coordinates)) throw new UnstorableValue('', 'a Polygon needs coordinates');
  const ring = coordinates.map((pair) =>
    toCoordinates(Array.isArray(pair) ? { latitude: pair[0], longitude: pair[1] } : pair),
  );
  const first = ring[0];
  const last = ring.at(-1);
  if (first && last && (first[0] !== last[0] || first[1] !== last[1])) ring.push([...first]);
  if (new Set(ring.map(String)).size < 3)
    throw new UnstorableValue('', 'a Polygon needs three different vertices');
  return ring;
}

export function toBinary(base64: unknown): Binary {
  if (typeof base64 !== 'string' || !isBase64(base64))
    throw new UnstorableValue('', 'Bytes must be base64 text');
  return new Binary(Buffer.from(base64, 'base64'));
}

export function toIdentifiers({ className, objectId }: TypedValue): [string, string] {
  if (typeof className !== 'string' || typeof objectId !== 'string' || className === '' || objectId === '')
    throw new UnstorableValue('', 'a Pointer needs className and objectId');
  return [className, objectId];
}

/** The value that a column stores for a typed value. */
function convertTypedColumn(value: TypedValue): unknown {
  switch (value.__type) {
    case 'Pointer':
      return pointerString(...toIdentifiers(value));
    case 'Date':
      return toDate(value['iso']);
    case 'Bytes':
      return toBinary(value['base64']);
    case 'GeoPoint':
      return toCoordinates(value);
    case 'Polygon':
      return { type: 'Polygon', coordinates: [toRing(value['coordinates'])] };
    case 'File':
      if (typeof value['name'] !== 'string') throw new UnstorableValue('', 'a File needs a name');
      return value['name'];
    default:
      throw new UnstorableValue('', `a ${value.__type} cannot be stored in a column`);
  }
}

/** Inside arrays and objects, pointers, GeoPoints and files keep their JSON form; dates and bytes do not. */
function convertTypedNested(value: TypedValue): unknown {
  if (value.__type === 'Pointer') return pointerTo(...toIdentifiers(value));
  if (value.__type === 'Date') return toDate(value['iso']);
  if (value.__type === 'Bytes') return toBinary(value['base64']);
  return convertNestedObject(value, convertNested);
}

/**
 * An object whose keys MongoDB takes as names, not as operators or paths; `convert` gives the stored value of each key.
 * @throws UnstorableValue
 */
export function convertNestedObject(
  value: Readonly<Record<string, unknown>>,
  convert: (member: unknown, key: string) => unknown,
): Document {
  const stored: Document = {};
  for (const [key, member] of Object.entries(value)) {
    if (key.includes('$') || key.includes('.'))
      throw new UnstorableValue(key, "nested keys must not contain '$' or '.'");
    setOwn(
      stored,
      key,
      at(key, () => convert(member, key)),
    );
  }
  return stored;
}

export function at<T>(place: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof UnstorableValue ? error.under(place) : error;
  }
}

/** A value inside an array or object column. @throws UnstorableValue */
export function convertNested(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((entry, index) => at(String(index), () => convertNested(entry)));
  if (isTyped(value)) return convertTypedNested(value);
  if (isPlainObject(value)) return convertNestedObject(value, convertNested);
  return scalarToStorage(value);
}

/** The value of a column. @throws UnstorableValue */
export function columnToStorage(value: unknown): unknown {
  return isTyped(value) ? convertTypedColumn(value) : convertNested(value);
}

function scalarToStorage(value: unknown): unknown {
  const storable =
    value === null || value instanceof Date || ['string', 'number', 'boolean'].includes(typeof value);
  if (!storable) throw new UnstorableValue('', `a value of type ${typeof value} cannot be stored`);
  return value;
}

/** A number when the conversion is exact, else the digits as text: a rounded number would be a wrong answer. */
export function exactNumber(digits: string): number | string {
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

export const isPair = (value: unknown): value is [number, number] =>
  Array.isArray(value) && value.length === 2 && value.every((entry) => typeof entry === 'number');

/** Parse's own form of a GeoJSON point or polygon; other geometries stay as they are. */
export function fromGeoJson(value: Readonly<Record<string, unknown>>): ParseRow | null {
  if (Object.keys(value).length !== 2) return null;
  const { type, coordinates } = value;
  if (type === 'Point' && isPair(coordinates)) return geoPoint(coordinates);
  if (type !== 'Polygon' || !Array.isArray(coordinates) || coordinates.length !== 1) return null;
  const ring: unknown = coordinates[0];
  if (!Array.isArray(ring) || !ring.every(isPair)) return null;
  return { __type: 'Polygon', coordinates: ring.map(([longitude, latitude]) => [latitude, longitude]) };
}

/** Classes of BSON are recognised by their mark: the driver of an application has classes of its own. */
function fromBsonType(value: object): unknown {
  switch ((value as { _bsontype?: unknown })._bsontype) {
    case 'Long':
    case 'Decimal128':
    case 'Timestamp':
      return exactNumber((value as Long | Decimal128).toString());
    case 'Double':
    case 'Int32':
      return valueFromStorage(Number(value.valueOf()), 'typed');
    case 'ObjectId':
      return (value as ObjectId).toHexString();
    case 'Binary':
      return { __type: 'Bytes', base64: Buffer.from((value as Binary).value()).toString('base64') };
    case 'BSONRegExp':
      return (value as BSONRegExp).pattern;
    default:
      return value instanceof RegExp ? value.source : null;
  }
}

/** A stored value as JSON, at any depth. `onKey` may exclude keys of nested objects. */
export function valueFromStorage(
  value: unknown,
  dates: DateForm,
  keepKey?: (key: string) => boolean,
): unknown {
  if (typeof value === 'bigint') return exactNumber(value.toString());
  // JSON would make null of what is no number or without end.
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
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
    const isTypedDate = key === 'iso' && value['__type'] === 'Date' && member instanceof Date;
    setOwn(converted, key, valueFromStorage(member, isTypedDate ? 'text' : dates, keepKey));
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

/** The three columns that store an ACL; `_acl` is the form that older servers read. */
export interface AccessColumns {
  readonly _rperm: readonly string[];
  readonly _wperm: readonly string[];
  readonly _acl: Readonly<Record<string, { readonly r?: true; readonly w?: true }>>;
}

function readGrant(acl: Record<string, unknown>, principal: string): { read: boolean; write: boolean } {
  const grant = acl[principal];
  if (!isPlainObject(grant))
    throw new UnstorableValue('ACL', `'${principal}' must hold read and write flags`);
  for (const [right, value] of Object.entries(grant)) {
    if ((right !== 'read' && right !== 'write') || typeof value !== 'boolean')
      throw new UnstorableValue('ACL', `'${principal}' may hold only boolean read and write`);
  }
  return { read: grant['read'] === true, write: grant['write'] === true };
}

/** @throws UnstorableValue */
export function aclToColumns(acl: unknown): AccessColumns {
  if (!isPlainObject(acl)) throw new UnstorableValue('ACL', 'must be an object');
  const readers: string[] = [];
  const writers: string[] = [];
  for (const principal of Object.keys(acl)) {
    const { read, write } = readGrant(acl, principal);
    if (read) readers.push(principal);
    if (write) writers.push(principal);
  }
  const legacy: Record<string, { r?: true; w?: true }> = {};
  for (const principal of writers) setOwn(legacy, principal, { w: true });
  for (const principal of readers) setOwn(legacy, principal, { ...legacy[principal], r: true });
  return { _rperm: readers, _wperm: writers, _acl: legacy };
}

const toStrings = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];

/** The ACL of a stored row, or undefined when it has none and so is public. */
export function columnsToAcl(
  document: Readonly<Record<string, unknown>>,
): Record<string, unknown> | undefined {
  const { _rperm, _wperm, _acl } = document;
  const acl: Record<string, { read?: true; write?: true }> = {};
  const grant = (principal: string, right: 'read' | 'write') =>
    setOwn(acl, principal, { ...(Object.hasOwn(acl, principal) ? acl[principal] : {}), [right]: true });
  if (_rperm !== undefined || _wperm !== undefined) {
    for (const principal of toStrings(_rperm)) grant(principal, 'read');
    for (const principal of toStrings(_wperm)) grant(principal, 'write');
    return acl;
  }
  if (!isPlainObject(_acl)) return undefined;
  for (const [principal, rights] of Object.entries(_acl)) {
    if (!isPlainObject(rights)) continue;
    if (rights['r'] === true) grant(principal, 'read');
    if (rights['w'] === true) grant(principal, 'write');
  }
  return acl;
}

/** Runs a conversion for a query. @throws StoreError `invalid_query` for a value that cannot be stored */
export function inQuery<T>(convert: () => T): T {
  try {
    return convert();
  } catch (error) {
    throw error instanceof UnstorableValue ? untranslatable(error.message) : error;
  }
}

/** A number that JSON cannot say and that is therefore written as text: a double as answers spell it, or all digits. */
function parseLargeNumber(text: string): number | Long | undefined {
  if (NON_FINITE.has(text)) return Number(text);
  if (!WHOLE.test(text) || Number.isSafeInteger(Number(text))) return undefined;
  if (isSpelledDouble(text)) return Number(text);
  return isLong(text) ? Long.fromString(text) : undefined;
}

function textToStorage(text: string, { field }: ColumnRef): unknown {
  if (field?.type === 'Number') return parseLargeNumber(text) ?? text;
  const prefixed = field?.type === 'Pointer' && field.targetClass !== undefined && !isPointerString(text);
  return prefixed ? pointerString(field.targetClass, text) : text;
}

/** Values as Parse stores them. */
export const PARSE_VALUES: ValueForm = {
  pointersAreIds: false,

  operandToStorage(value, ref) {
    if (value === null || typeof value === 'number' || typeof value === 'boolean') return value;
    const inside = ref.nested || ref.field?.type === 'Array' || ref.field?.type === 'Object';
    if (typeof value === 'string') return inside ? value : textToStorage(value, ref);
    return inQuery(() => (inside ? convertNested(value) : columnToStorage(value)));
  },

  listForms(value, ref) {
    return [this.operandToStorage(value, ref)];
  },

  /** Bare ids in a list take the class of a typed member when the column itself names none. */
  operandsToStorage(values, ref) {
    const donor =
      ref.field?.type === 'Pointer' && !ref.field.targetClass ? values.find(isPointer) : undefined;
    const known = donor ? { ...ref, field: { type: 'Pointer' as const, targetClass: donor.className } } : ref;
    return values.map((value) => this.operandToStorage(value, known));
  },

  literalToStorage: columnToStorage,

  listIds: () => [],

  convertCompared(value) {
    if (Array.isArray(value)) return value.map((entry) => this.convertCompared(entry));
    return isTyped(value) ? inQuery(() => columnToStorage(value)) : value;
  },

  /** Elements have names of their own, which are stored as written. */
  toMember({ form }, path) {
    return { column: path, nested: true, undeclared: false, form };
  },

  asPointerColumn(ref) {
    const column = pointerColumn(ref.column);
    return { column, field: { type: 'Pointer' }, nested: false, undeclared: false, form: this };
  },

  resultFromStorage: (value, field, keepKey) => columnFromStorage(value, field, 'text', keepKey),
};

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Ten letters and digits, as Parse Server generates them. */
export function newObjectId(): string {
  return Array.from({ length: 10 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
}

export const POINTER_PREFIX = '_p_';

export function pointerColumn(field: string): string {
  return POINTER_PREFIX + field;
}

export function isPointerColumn(column: string): boolean {
  return column.startsWith(POINTER_PREFIX);
}
