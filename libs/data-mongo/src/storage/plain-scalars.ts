import { Binary, BSON, type DBRef, Decimal128, type Double, type Int32, Long, ObjectId, UUID } from 'mongodb';
import { type FieldSchema, type IdKind, isPlainObject } from '#policy';
import type { DateForm } from './class-storage.js';

/** The BSON type of every value of a column, where it has one type: what a written value has to become. */
export type StoredKind =
  | IdKind
  | 'int'
  | 'long'
  | 'double'
  | 'decimal'
  | 'date'
  | 'bool'
  | 'binary'
  | 'document'
  | 'list'
  | 'geoJson'
  | 'pair'
  | 'other';

/** Beside the fields of the schema, which callers see. */
const KINDS = new WeakMap<FieldSchema, StoredKind>();

/** Fields whose kind the validator of the collection says: documents that a sample does not have are of the same one. */
const CERTAIN = new WeakSet<FieldSchema>();

/** @param kind of a list, that of its entries. @param certain whether every document has it: a sample never says so */
export function withKind<Field extends FieldSchema>(
  field: Field,
  kind: StoredKind | null,
  certain = false,
): Field {
  if (kind !== null) KINDS.set(field, kind);
  if (kind !== null && certain) CERTAIN.add(field);
  return field;
}

export const isCertain = (field: FieldSchema | undefined): boolean =>
  field !== undefined && CERTAIN.has(field);

export function findKind(field: FieldSchema | undefined): StoredKind | null {
  return (field && KINDS.get(field)) ?? null;
}

/** The field of a number that a pipeline computes. */
export const COMPUTED_NUMBER: FieldSchema = Object.freeze({ type: 'Number' });

/** The stored kinds of columns, of their members and of their entries. Columns of one schema type may differ in them. */
export function listKinds(fields: ReadonlyMap<string, FieldSchema>): unknown[] {
  return [...fields].map(([name, field]) => [name, listKindsOfField(field)]);
}

const listKindsOfField = (field: FieldSchema): unknown[] => [
  findKind(field),
  isCertain(field),
  field.members && listKinds(field.members),
  field.entries && listKindsOfField(field.entries),
];

export const HEX_ID = /^[0-9a-f]{24}$/;
const UUID_TEXT = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
export const WHOLE = /^-?(?:0|[1-9]\d*)$/;
export const DIGITS = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:E[+-]?\d+)?$/i;

const LONG_RANGE = { least: -(2n ** 63n), most: 2n ** 63n - 1n };

/** The stored id, in the one spelling that `idText` gives; undefined for text that is no id of the kind. */
export function parseId(kind: IdKind, text: string): unknown {
  switch (kind) {
    case 'objectId':
      return HEX_ID.test(text) ? ObjectId.createFromHexString(text) : undefined;
    case 'uuid':
      return UUID_TEXT.test(text) ? new UUID(text) : undefined;
    case 'number':
      return numberId(text);
    case 'string':
      return text;
  }
}

function numberId(text: string): unknown {
  const id = parseNumber(text);
  return id !== undefined && idText(id) === text ? id : undefined;
}

function parseNumber(text: string): unknown {
  const number = Number(text);
  if (Number.isFinite(number) && exactText(number) === text) return number;
  return WHOLE.test(text) && isLong(text) ? Long.fromString(text) : parseDecimal(text);
}

/** Every digit of a whole number, which JavaScript rounds beyond 2^53. */
const exactText = (number: number): string =>
  Number.isInteger(number) && !Number.isSafeInteger(number) ? BigInt(number).toString() : String(number);

export function isLong(text: string): boolean {
  const whole = BigInt(text);
  return whole >= LONG_RANGE.least && whole <= LONG_RANGE.most;
}

/** Whether a whole number beyond 2^53 is spelled as answers spell a double, which need not be all of its digits. */
export const isSpelledDouble = (text: string): boolean => {
  const number = Number(text);
  return Number.isInteger(number) && !Number.isSafeInteger(number) && String(number) === text;
};

export function parseDecimal(text: string): Decimal128 | undefined {
  if (!DIGITS.test(text)) return undefined;
  try {
    return Decimal128.fromString(text);
  } catch {
    return undefined;
  }
}

/** Ids are text outside the database; each has exactly one, also where the database has several types of an equal number. */
export function idText(id: unknown): string {
  const converted = isIdValue(id) ? scalarFromStorage(id, 'text') : BSON.EJSON.stringify(id);
  if (typeof converted === 'number') return exactText(converted);
  return isDecimal(id) ? shortestDigits(String(converted)) : String(converted);
}

const isDecimal = (id: unknown): boolean =>
  typeof id === 'object' && id !== null && (id as { _bsontype?: unknown })._bsontype === 'Decimal128';

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:E([+-]\d+))?$/;

/** The digits of whole numbers up to this length are written out, as those of other types. */
const MAX_WHOLE = 40;

/** `2.50`, `25E-1` and `2.5` are one number; of the texts of a decimal, the one without zeros that could be left out. */
function shortestDigits(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? [];
  const all = `${whole}${fraction}`.replace(/^0+/, '');
  const digits = all.replace(/0+$/, '');
  if (whole === '') return text;
  if (digits === '') return '0';
  const scale = Number(exponent) - fraction.length + (all.length - digits.length);
  if (scale >= 0 && digits.length + scale <= MAX_WHOLE) return `${sign}${digits}${'0'.repeat(scale)}`;
  if (scale < 0 && scale > -MAX_WHOLE) {
    const padded = digits.padStart(1 - scale, '0');
    return `${sign}${padded.slice(0, scale)}.${padded.slice(scale)}`;
  }
  return `${sign}${digits}E${scale < 0 ? '' : '+'}${scale}`;
}

export function isIdValue(value: unknown): boolean {
  return ['string', 'number', 'bigint'].includes(typeof value) || isBsonId(value);
}

const BSON_IDS = new Set(['ObjectId', 'Long', 'Decimal128', 'Int32', 'Double']);

function isBsonId(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || isPlainObject(value)) return false;
  const { _bsontype: type } = value as { _bsontype?: unknown };
  return BSON_IDS.has(String(type)) || uuidText(value) !== undefined;
}

export const isUuid = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && uuidText(value) !== undefined;

function uuidText(value: object): string | undefined {
  const { _bsontype: type, sub_type: subtype } = value as { _bsontype?: unknown; sub_type?: unknown };
  if (type !== 'Binary' || subtype !== Binary.SUBTYPE_UUID) return undefined;
  const { buffer } = value as Binary;
  return buffer.length === 16 ? new UUID(Buffer.from(buffer)).toString() : undefined;
}

/** JSON would make null of what is no number or without end. */
const shownNumber = (number: number): number | string => (Number.isFinite(number) ? number : String(number));

/** Classes of BSON are recognised by their mark: the driver of an application has classes of its own. */
export function scalarFromStorage(value: unknown, dates: DateForm): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number') return shownNumber(value);
  if (typeof value !== 'object' || value === null) return value ?? null;
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) return null;
    return dates === 'text' ? value.toISOString() : { __type: 'Date', iso: value.toISOString() };
  }
  const { _bsontype: type } = value as { _bsontype?: unknown };
  switch (type) {
    case 'ObjectId':
      return (value as ObjectId).toHexString();
    case 'Long':
    case 'Decimal128':
      return (value as Long | Decimal128).toString();
    case 'Int32':
    case 'Double':
      return shownNumber((value as Int32 | Double).valueOf());
    case 'Binary':
      return uuidText(value) ?? { __type: 'Bytes', base64: (value as Binary).toString('base64') };
    case 'Timestamp':
      return (value as Long).toString();
    case 'BSONRegExp':
      return (value as unknown as { pattern: string }).pattern;
    case 'Code':
      return String((value as unknown as { code: unknown }).code);
    case 'DBRef': {
      const { collection, oid, db } = value as DBRef;
      return { collection, id: idText(oid), ...(db && { database: db }) };
    }
    default:
      return value instanceof RegExp ? value.source : null;
  }
}
