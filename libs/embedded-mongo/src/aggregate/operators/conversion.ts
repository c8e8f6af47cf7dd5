import { Binary, Decimal128, Long, ObjectId, Timestamp } from 'bson';
import { mongoError, MongoError } from '../../errors.js';
import { createDate } from '../../bson/date.js';
import { packDecimal, parseDecimal } from '../../bson/decimal.js';
import { getField, isDocument, type Document } from '../../bson/document.js';
import {
  doubleValue,
  exactDecimal,
  fitsLong,
  longValue,
  numberKind,
  toBigInt,
  toDecimal128,
  toDouble,
} from '../../bson/number.js';
import { readTypeName, typeName } from '../../bson/type-name.js';
import { readNamedArguments, unary } from '../arguments.js';
import { nullish, truthy, type OperatorCompiler, type OperatorTable } from '../evaluate.js';
import { secondsOfId } from '../date/arguments.js';
import { compileDateFormat, utcFormat } from '../date/format.js';
import { parseDate } from '../date/parse.js';
import { utcZone } from '../date/zone.js';
import { MAX_DOCUMENT_BYTES } from '../../wire/limits.js';
import { binaryText, numberOfBytes, readBinaryForm, toBinary, type BinaryForm } from './binary-conversion.js';

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
    if (value instanceof Decimal128 && !Number.isFinite(double) && !/Inf|NaN/.test(value.toString())) {
      throw tooLarge();
    }
    return doubleValue(double);
  }
  if (!Number.isFinite(double))
    throw failure(`Attempt to convert ${Number.isNaN(double) ? 'NaN' : 'infinity'} value to integer type`);
  const whole = toBigInt(value);
  if (to === 'int' ? whole > 0x7fffffffn || whole < -0x80000000n : !fitsLong(whole)) {
    throw tooLarge();
  }
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
    const result = to === 'decimal' ? packDecimal(parseDecimal(text), negative) : doubleValue(Number(text));
    if (typeof exactDecimal(result) === 'number') throw bad();
    return result;
  }
  if (to === 'decimal') return specialDecimal(text);
  return special[2]?.toLowerCase() === 'nan' ? NaN : special[1] === '-' ? -Infinity : Infinity;
}

/** NaN or an infinity; unlike that of `bson`, NaN keeps its sign. */
function specialDecimal(text: string): Decimal128 {
  const { bytes } = Decimal128.fromString(text);
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
