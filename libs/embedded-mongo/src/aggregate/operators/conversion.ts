import { Binary, Decimal128, Long, ObjectId, Timestamp } from 'bson';
import { storedBytes } from '../../bson/compare.js';
import { packDecimal, parseDecimal } from '../../bson/decimal.js';
import { type Document, getField, isDocument } from '../../bson/document.js';
import {
  doubleValue,
  exactDecimal,
  fitsLong,
  compareNumbers,
  longValue,
  numberKind,
  toBigInt,
  toDecimal128,
  toDouble,
  wholeNumber,
} from '../../bson/number.js';
import { createDate } from '../../bson/times.js';
import { readTypeName, typeName } from '../../bson/type-name.js';
import { mongoError, MongoError } from '../../errors.js';
import { MAX_DOCUMENT_BYTES } from '../../wire/raw-bson.js';
import { readNamedArguments, unary } from '../arguments.js';
import { utcZone } from '../date/calendar.js';
import { compileDateFormat, parseDate, utcFormat } from '../date/text.js';
import { secondsOfId } from './date.js';
import { nullish, type OperatorCompiler, type OperatorTable, truthy } from '../evaluate.js';

/** How binary data reads as text, and how numbers are laid out in bytes. */
interface BinaryForm {
  readonly format: BinaryFormat | undefined;
  readonly byteOrder: ByteOrder;
  readonly subtype: unknown;
}

const formats = ['auto', 'base64', 'base64url', 'hex', 'utf8', 'uuid'] as const;
const byteOrders = ['little', 'big'] as const;
type BinaryFormat = (typeof formats)[number];
type ByteOrder = (typeof byteOrders)[number];

const uuidLength = 16;
const uuidForm = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
const textForms: Readonly<Partial<Record<BinaryFormat, RegExp>>> = {
  base64: /^(?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?$/,
  base64url: /^(?:[\w-]{4})*(?:[\w-]{2}(?:==)?|[\w-]{3}=?)?$/,
  hex: /^(?:[\da-f]{2})*$/i,
  utf8: /^/,
};

/** Errors: 4341114 and 4341125 for a format, 9130001 and 9130002 for an order that there is not. */
function readBinaryForm(format: unknown, byteOrder: unknown, subtype: unknown): BinaryForm {
  return {
    format: choice(format, formats, 'format', [4341114, 4341125]),
    byteOrder: choice(byteOrder, byteOrders, 'byteOrder', [9130001, 9130002]) ?? 'little',
    subtype,
  };
}

function choice<Name extends string>(
  value: unknown,
  names: readonly Name[],
  what: string,
  [notText, unknown]: readonly [number, number],
): Name | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string')
    throw mongoError(notText, `$convert requires that '${what}' be a string, found: ${typeName(value)}`);
  const found = names.find((name) => name === value);
  if (!found) throw mongoError(unknown, `Invalid '${what}' argument for $convert: ${value}`);
  return found;
}

function readSubtype(subtype: unknown): number {
  if (numberKind(subtype) === undefined)
    throw mongoError(4341108, `'subtype' of $convert is a number, not ${typeName(subtype)}`);
  const type = wholeNumber(subtype);
  if (type === undefined)
    throw mongoError(4341106, "In $convert, numeric 'subtype' argument is not an integer");
  if (type < 0 || (type > 9 && type < Binary.SUBTYPE_USER_DEFINED) || type > 255)
    throw mongoError(4341107, `$convert has no subtype ${type}`);
  return type;
}

function requireFormat({ format }: BinaryForm, from: string, to: string): BinaryFormat {
  if (format) return format;
  throw mongoError(4341115, `Format must be specified when converting from '${from}' to '${to}'`);
}

/** Bytes of a text, a number or bytes of the same subtype; undefined for what cannot be converted. */
function toBinary(value: unknown, form: BinaryForm): Binary | undefined {
  const format = typeof value === 'string' ? requireFormat(form, 'string', 'binData') : undefined;
  const bytes = typeof value === 'string' ? undefined : bytesOfNumber(value, form.byteOrder);
  if (!format && !bytes && !(value instanceof Binary)) return undefined;
  const subtype = readSubtype(form.subtype);
  if (value instanceof Binary) return value.sub_type === subtype ? value : undefined;
  if (bytes) return new Binary(bytes, subtype);
  if (!format || (format === 'uuid') !== (subtype === Binary.SUBTYPE_UUID)) return undefined;
  const text = value as string;
  if (format === 'uuid')
    return uuidForm.test(text)
      ? new Binary(Buffer.from(text.replaceAll('-', ''), 'hex'), subtype)
      : undefined;
  if (format === 'auto' || !textForms[format]?.test(text)) return undefined;
  return new Binary(Buffer.from(text, format), subtype);
}

function bytesOfNumber(value: unknown, order: ByteOrder): Buffer | undefined {
  const bytes = Buffer.alloc(numberKind(value) === 'int' ? 4 : 8);
  const kind = numberKind(value);
  if (kind === 'int') bytes.writeInt32LE(toDouble(value));
  else if (kind === 'long') bytes.writeBigInt64LE(toBigInt(value));
  else if (kind === 'double') bytes.writeDoubleLE(toDouble(value));
  else return undefined;
  return order === 'big' ? bytes.reverse() : bytes;
}

/** Text of bytes; undefined for bytes that are none in this format. */
function binaryText(value: Binary, form: BinaryForm): string | undefined {
  const format = requireFormat(form, 'binData', 'string');
  const bytes = Buffer.from(storedBytes(value));
  const uuid = value.sub_type === Binary.SUBTYPE_UUID && bytes.length === uuidLength;
  if (format === 'uuid' || (format === 'auto' && uuid)) return uuid ? value.toUUID().toString() : undefined;
  const text = bytes.toString(format === 'auto' ? 'base64' : format);
  if (format === 'hex') return text.toUpperCase();
  return format === 'utf8' && !Buffer.from(text).equals(bytes) ? undefined : text;
}

/** The number in bytes; undefined for a length that no number of the type has. */
function numberOfBytes(value: Binary, to: 'int' | 'long' | 'double', { byteOrder }: BinaryForm): unknown {
  const bytes = Buffer.from(storedBytes(value));
  if (byteOrder === 'big') bytes.reverse();
  const { length } = bytes;
  if (to === 'double') {
    if (length === 4) return doubleValue(bytes.readFloatLE());
    return length === 8 ? doubleValue(bytes.readDoubleLE()) : undefined;
  }
  if (to === 'long' && length === 8) return longValue(bytes.readBigInt64LE());
  if (![1, 2, 4].includes(length)) return undefined;
  const whole = bytes.readIntLE(0, length);
  return to === 'int' ? whole : longValue(BigInt(whole));
}

type Target = 'double' | 'string' | 'binData' | 'objectId' | 'bool' | 'date' | 'int' | 'long' | 'decimal';

const formatDate = compileDateFormat(utcFormat);
/** What `onError` answers: a failed conversion, and a date whose year has no four digits. */
const failures = new Set([241, 18537]);

const failure = (reason: string): MongoError =>
  mongoError(241, `${reason} in $convert with no onError value`);
const tooLarge = (): MongoError => failure('Conversion would overflow target type');
const createUnsupported = (value: unknown, to: string): Error =>
  failure(`Unsupported conversion from ${typeName(value)} to ${to}`);

/** The string `$toString` gives, or undefined for types it refuses. */
export function stringForm(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  if (value instanceof Date) return formatDate(Number(value), utcZone);
  if (value instanceof ObjectId) return value.toHexString();
  // A Timestamp is a Long to JavaScript, not to MongoDB.
  if (value instanceof Timestamp) return undefined;
  if (value instanceof Long || value instanceof Decimal128) return value.toString();
  return numberKind(value) === undefined ? undefined : doubleString(toDouble(value));
}

/** The digits that tell a double from all others, or `precision` of them; with an exponent where it is far from the point. */
export function doubleString(value: number, precision?: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  if (Object.is(value, -0)) return '-0';
  const [shown, power] = value.toExponential(precision && precision - 1).split('e') as [string, string];
  const exponent = Number(power);
  if (exponent >= -4 && exponent < (precision ?? 16)) return String(Number(`${shown}e${power}`));
  const mantissa = shown.replace(/\.?0+$/, '');
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

function toNumber(value: unknown, to: 'int' | 'long' | 'double' | 'decimal'): unknown {
  if (typeof value === 'boolean') return ofKind(value ? 1 : 0, to);
  if (value instanceof Date) {
    if (to === 'int') throw createUnsupported(value, to);
    return ofKind(Long.fromNumber(Number(value)), to);
  }
  if (typeof value === 'string') return parseNumber(value, to);
  if (numberKind(value) === undefined) throw createUnsupported(value, to);
  return ofKind(value, to);
}

function ofKind(value: unknown, to: 'int' | 'long' | 'double' | 'decimal'): unknown {
  if (to === 'decimal') return toDecimal128(value);
  const double = toDouble(value);
  if (to === 'double') {
    if (value instanceof Decimal128 && !Number.isFinite(double) && !/Inf|NaN/.test(value.toString()))
      throw tooLarge();
    return doubleValue(double);
  }
  if (!Number.isFinite(double))
    throw failure(`Attempt to convert ${Number.isNaN(double) ? 'NaN' : 'infinity'} value to integer type`);
  const whole = toBigInt(value);
  if (to === 'int' ? whole > 0x7fffffffn || whole < -0x80000000n : !fitsLong(whole)) throw tooLarge();
  return to === 'int' ? Number(whole) : longValue(whole);
}

function parseNumber(text: string, to: 'int' | 'long' | 'double' | 'decimal'): unknown {
  const bad = (): Error => failure(`Failed to parse number '${text}'`);
  if (to === 'int' || to === 'long') {
    if (!/^[+-]?\d+$/.test(text)) throw bad();
    const whole = BigInt(text.replace('+', ''));
    if (to === 'int' ? whole > 0x7fffffffn || whole < -0x80000000n : !fitsLong(whole)) throw bad();
    return to === 'int' ? Number(whole) : longValue(whole);
  }
  if (!/^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)$/i.test(text)) throw bad();
  const special = /^([+-]?)(inf|nan)/i.exec(text);
  if (!special) {
    const negative = text.startsWith('-');
    // Unlike arithmetic, reading a text cuts what has no place.
    const result =
      to === 'decimal' ? packDecimal(parseDecimal(text), negative, 'truncate') : doubleValue(Number(text));
    const lost = compareNumbers(result, 0) === 0 && /^[^e]*[1-9]/i.test(text);
    if (lost || typeof exactDecimal(result) === 'number') throw bad();
    return result;
  }
  if (to === 'decimal') return specialDecimal(text);
  return special[2]?.toLowerCase() === 'nan' ? NaN : special[1] === '-' ? -Infinity : Infinity;
}

/** NaN or an infinity; unlike that of `bson`, NaN keeps its sign. */
function specialDecimal(text: string): Decimal128 {
  // A copy: `bson` gives every NaN the same bytes.
  const bytes = Uint8Array.from(Decimal128.fromString(text).bytes);
  if (text.startsWith('-')) bytes[15] = (bytes[15] as number) | 0x80;
  return new Decimal128(bytes);
}

function toDate(value: unknown): Date {
  if (value instanceof Date) return value;
  if (value instanceof ObjectId) return createDate(secondsOfId(value) * 1000);
  if (value instanceof Timestamp) return createDate(value.t * 1000);
  if (typeof value === 'string') return parseDate(value);
  const kind = numberKind(value);
  if (kind === undefined || kind === 'int') throw createUnsupported(value, 'date');
  return createDate(Number(toBigInt(ofKind(value, 'long'))), tooLarge);
}

const checkSize = (text: string | undefined): string | undefined => {
  if (text !== undefined && text.length >= MAX_DOCUMENT_BYTES) throw tooLarge();
  return text;
};

const anyText: BinaryForm = { format: 'auto', byteOrder: 'little', subtype: 0 };

function convert(value: unknown, to: string, form = anyText): unknown {
  const result = convertTo(value, to as Target, form);
  if (result === undefined) throw createUnsupported(value, to);
  return result;
}

/** Undefined for what cannot be converted. */
function convertTo(value: unknown, to: Target, form: BinaryForm): unknown {
  switch (to) {
    case 'string':
      return value instanceof Binary ? checkSize(binaryText(value, form)) : stringForm(value);
    case 'binData':
      return toBinary(value, form);
    case 'bool':
      return typeof value === 'boolean' ? value : truthy(value);
    case 'objectId':
      if (value instanceof ObjectId) return value;
      if (typeof value !== 'string') return undefined;
      if (!/^[0-9a-fA-F]{24}$/.test(value)) throw failure(`Failed to parse objectId '${value}'`);
      return ObjectId.createFromHexString(value);
    case 'date':
      return toDate(value);
    case 'int':
    case 'long':
    case 'double':
      return value instanceof Binary ? numberOfBytes(value, to, form) : toNumber(value, to);
    case 'decimal':
      return toNumber(value, to);
    default:
      return undefined;
  }
}

const shorthand = (to: Target, form?: BinaryForm): OperatorCompiler =>
  unary((value) => (nullish(value) ? null : convert(value, to, form)));

/** `{type, subtype}` or the type alone. */
function readTarget(value: unknown): { type: string; subtype: unknown } {
  const spec: Document = isDocument(value) ? value : { type: value };
  const type = getField(spec, 'type');
  if (nullish(type)) throw mongoError(9, "Missing 'type' in the 'to' argument of $convert");
  return { type: readTypeName(type), subtype: Object.hasOwn(spec, 'subtype') ? spec['subtype'] : 0 };
}

const convertOperator: OperatorCompiler = (argument, builder, name) => {
  const { input, to, onError, onNull, format, byteOrder } = readNamedArguments(
    argument,
    builder,
    name,
    ['input', 'to'],
    ['onError', 'onNull', 'format', 'byteOrder'],
  );
  return (scope) => {
    const wanted = to(scope);
    const value = input(scope);
    const texts = [format?.(scope), byteOrder?.(scope)] as const;
    const target = nullish(wanted) ? undefined : readTarget(wanted);
    if (nullish(value)) return onNull ? onNull(scope) : null;
    if (!target) return null;
    const form = readBinaryForm(...texts, target.subtype);
    try {
      return convert(value, target.type, form);
    } catch (error) {
      if (onError && error instanceof MongoError && failures.has(error.code)) return onError(scope);
      throw error;
    }
  };
};

export const conversionOperators: OperatorTable = {
  $convert: convertOperator,
  $toString: shorthand('string'),
  $toObjectId: shorthand('objectId'),
  $toBool: shorthand('bool'),
  $toDate: shorthand('date'),
  $toInt: shorthand('int'),
  $toLong: shorthand('long'),
  $toDouble: shorthand('double'),
  $toDecimal: shorthand('decimal'),
  $toUUID: shorthand('binData', { ...anyText, format: 'uuid', subtype: Binary.SUBTYPE_UUID }),
  $isNumber: unary((value) => numberKind(value) !== undefined),
  $type: unary(typeName),
};
