import { Binary, Decimal128, Long, ObjectId, Timestamp } from 'bson';
import { mongoError, notImplemented, type MongoError } from '../../errors.js';
import { createDate } from '../../bson/date.js';
import { getField, isDocument } from '../../bson/document.js';
import {
  doubleValue,
  fitsLong,
  longValue,
  numberKind,
  toBigInt,
  toDecimal128,
  toDouble,
} from '../../bson/number.js';
import { typeName } from '../../bson/type-name.js';
import { positional, unary } from '../arguments.js';
import { nullish, truthy, type Evaluator, type OperatorCompiler, type OperatorTable } from '../evaluate.js';
import { secondsOfId } from '../date/arguments.js';
import { parseIsoDate } from '../date/parse.js';

type Target = 'double' | 'string' | 'objectId' | 'bool' | 'date' | 'int' | 'long' | 'decimal';

const targets: Readonly<Record<string, Target>> = {
  '1': 'double',
  '2': 'string',
  '7': 'objectId',
  '8': 'bool',
  '9': 'date',
  '16': 'int',
  '18': 'long',
  '19': 'decimal',
};
const targetNames = new Set<string>(Object.values(targets));

const failure = (reason: string): MongoError =>
  mongoError(241, `${reason} in $convert with no onError value`);
const tooLarge = (): MongoError => failure('Conversion would overflow target type');
const createUnsupported = (value: unknown, to: Target): Error =>
  failure(`Unsupported conversion from ${typeName(value)} to ${to}`);

/** The string `$toString` gives, or undefined for types it refuses. */
export function stringForm(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  if (value instanceof Date) return isoString(value);
  if (value instanceof ObjectId) return value.toHexString();
  // A Timestamp is a Long to JavaScript, not to MongoDB.
  if (value instanceof Timestamp) return undefined;
  if (value instanceof Long || value instanceof Decimal128) return value.toString();
  if (value instanceof Binary)
    return value.sub_type === 4 && value.length() === 16
      ? value.toUUID().toString()
      : Buffer.from(value.value()).toString('base64');
  return numberKind(value) === undefined ? undefined : doubleString(toDouble(value));
}

/** The digits that tell a double from all others, or `precision` of them; with an exponent where it is far from the point. */
export function doubleString(value: number, precision?: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  if (Object.is(value, -0)) return '-0';
  const shown = precision === undefined ? value : Number(value.toPrecision(precision));
  const [mantissa, power] = shown.toExponential().split('e') as [string, string];
  const exponent = Number(power);
  if (exponent >= -4 && exponent < (precision ?? 16)) return String(shown);
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

function isoString(date: Date): string {
  if (Number.isNaN(Number(date)))
    throw mongoError(18534, 'the date is outside the range a date string can express');
  return date.toISOString();
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
  const whole = value instanceof Decimal128 ? BigInt(truncateDecimal(value)) : toBigInt(value);
  if (to === 'int' ? whole > 0x7fffffffn || whole < -0x80000000n : !fitsLong(whole)) {
    throw tooLarge();
  }
  return to === 'int' ? Number(whole) : longValue(whole);
}

/** The integer digits of a finite decimal. */
function truncateDecimal(value: Decimal128): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:E([+-]\d+))?$/.exec(value.toString()) as RegExpExecArray;
  const shift = Number(match[4] ?? 0);
  if (shift > 40) throw tooLarge();
  const fraction = (match[3] ?? '').padEnd(Math.max(shift, 0), '0');
  const all = (match[2] as string) + fraction.slice(0, Math.max(shift, 0));
  return (match[1] as string) + (shift >= 0 ? all : all.slice(0, shift) || '0');
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
  if (to === 'decimal') {
    try {
      return Decimal128.fromStringWithRounding(text);
    } catch {
      throw bad();
    }
  }
  const special = /^([+-]?)(inf|nan)/i.exec(text);
  if (!special) return doubleValue(Number(text));
  return special[2]?.toLowerCase() === 'nan' ? NaN : special[1] === '-' ? -Infinity : Infinity;
}

function toDate(value: unknown): Date {
  if (value instanceof Date) return value;
  if (value instanceof ObjectId) return createDate(secondsOfId(value) * 1000);
  if (value instanceof Timestamp) return createDate(value.t * 1000);
  if (typeof value === 'string') return parseIsoDate(value);
  const kind = numberKind(value);
  if (kind === undefined || kind === 'int') throw createUnsupported(value, 'date');
  return createDate(Number(toBigInt(ofKind(value, 'long'))), tooLarge);
}

function convert(value: unknown, to: Target): unknown {
  switch (to) {
    case 'string': {
      const text = stringForm(value);
      if (text === undefined) throw createUnsupported(value, to);
      return text;
    }
    case 'bool':
      return typeof value === 'boolean' ? value : numberKind(value) === undefined ? true : truthy(value);
    case 'objectId':
      if (value instanceof ObjectId) return value;
      if (typeof value !== 'string') throw createUnsupported(value, to);
      if (!/^[0-9a-fA-F]{24}$/.test(value)) throw failure(`Failed to parse objectId '${value}'`);
      return ObjectId.createFromHexString(value);
    case 'date':
      return toDate(value);
    case 'int':
    case 'long':
    case 'double':
    case 'decimal':
      return toNumber(value, to);
  }
}

const shorthand = (to: Target): OperatorCompiler =>
  unary((value) => (nullish(value) ? null : convert(value, to)));

function readTarget(value: unknown): Target {
  const type = isDocument(value) ? getField(value, 'type') : value;
  const name = numberKind(type) === undefined ? type : targets[String(toDouble(type))];
  if (typeof name === 'string' && ['binData', 'object', 'array'].includes(name)) {
    throw notImplemented(`$convert to ${name}`);
  }
  if (typeof name !== 'string' || !targetNames.has(name)) {
    throw mongoError(2, `Unknown type name: ${String(type)} in $convert`);
  }
  return name as Target;
}

const convertOperator: OperatorCompiler = (argument, builder, name) => {
  if (!isDocument(argument))
    throw mongoError(9, `${name} expects an object of named arguments but found: ${typeName(argument)}`);
  for (const key of Object.keys(argument)) {
    if (!['input', 'to', 'onError', 'onNull'].includes(key)) {
      throw mongoError(9, `${name} found an unknown or unsupported argument: ${key}`);
    }
  }
  const part = (key: string): Evaluator | undefined =>
    Object.hasOwn(argument, key) ? builder.compile(argument[key]) : undefined;
  const [input, to, onError, onNull] = [part('input'), part('to'), part('onError'), part('onNull')];
  if (!input) throw mongoError(9, `Missing 'input' parameter to ${name}`);
  if (!to) throw mongoError(9, `Missing 'to' parameter to ${name}`);
  return (scope) => {
    const value = input(scope);
    const wanted = to(scope);
    if (nullish(wanted)) return null;
    const target = readTarget(wanted);
    if (nullish(value)) return onNull ? onNull(scope) : null;
    if (!onError) return convert(value, target);
    try {
      return convert(value, target);
    } catch {
      return onError(scope);
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
  $isNumber: unary((value) => numberKind(value) !== undefined),
  $type: (argument, builder, name) => {
    const [value] = positional(argument, builder, name, 1) as [Evaluator];
    return (scope) => typeName(value(scope));
  },
};
