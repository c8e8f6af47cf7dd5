import { Decimal128, Double, Int32, Long } from 'bson';
import type { ExactDecimal } from './decimal.js';
import { compareDecimals, decimalOfDouble, decimalParts, packDecimal, roundDecimal } from './decimal.js';
import { bsonTag } from './document.js';

/** The four numeric BSON types, narrowest first. */
export type NumberKind = 'int' | 'long' | 'double' | 'decimal';

const maxInt = 0x7fffffff;
const minInt = -0x80000000;
const maxLong = 2n ** 63n - 1n;
const minLong = -(2n ** 63n);

export const isInt32 = (value: number): boolean =>
  Number.isInteger(value) && value <= maxInt && value >= minInt && !Object.is(value, -0);

const taggedKinds: Readonly<Record<string, NumberKind>> = {
  Double: 'double',
  Int32: 'int',
  Long: 'long',
  Decimal128: 'decimal',
};

/** The numeric type of a value, or undefined when it is no number. */
export function numberKind(value: unknown): NumberKind | undefined {
  if (typeof value === 'number') return isInt32(value) ? 'int' : 'double';
  if (typeof value !== 'object' || value === null) return undefined;
  const tag = bsonTag(value);
  return tag === undefined ? undefined : taggedKinds[tag];
}
/** The nearest double; NaN for what is no number. */
export function toDouble(value: unknown): number {
  if (typeof value === 'number') return value;
  if (value instanceof Double || value instanceof Int32) return value.value;
  // A Timestamp is a Long to JavaScript, not to MongoDB.
  if (value instanceof Long) return bsonTag(value) === 'Long' ? value.toNumber() : NaN;
  if (value instanceof Decimal128) return Number(value.toString());
  return NaN;
}

/** Whether a number has the minus sign, as a zero may. */
export function isNegative(value: unknown): boolean {
  if (value instanceof Decimal128) return ((value.bytes[15] as number) & 0x80) !== 0;
  const double = toDouble(value);
  return double < 0 || Object.is(double, -0);
}

/** The exact decimal of a finite number of any type; NaN and infinities as JS numbers. */
export function exactDecimal(value: unknown): ExactDecimal | number {
  if (value instanceof Long) return { coefficient: value.toBigInt(), exponent: 0 };
  if (value instanceof Decimal128) return decimalParts(value);
  const double = toDouble(value);
  return Number.isFinite(double) ? decimalOfDouble(double) : double;
}

const zero: ExactDecimal = { coefficient: 0n, exponent: 0 };

/** Decimal operand of mixed arithmetic: the server reads a double to 15 significant digits. */
export function promoteToDecimal(value: unknown): ExactDecimal | number {
  if (numberKind(value) !== 'double') return exactDecimal(value);
  const double = toDouble(value);
  if (!Number.isFinite(double)) return double;
  return double === 0 ? zero : decimalParts(Decimal128.fromString(double.toPrecision(15)));
}

export const toDecimal128 = (value: unknown): Decimal128 => {
  if (value instanceof Decimal128) return value;
  const parts = promoteToDecimal(value);
  return typeof parts === 'number'
    ? Decimal128.fromString(String(parts))
    : packDecimal(parts, isNegative(value));
};

/** A double that stays a double on the wire, also when its value is integral. */
export const doubleValue = (value: number): number | Double => (isInt32(value) ? new Double(value) : value);

export const fitsLong = (value: bigint): boolean => value <= maxLong && value >= minLong;
export const longValue = (value: bigint): Long => Long.fromBigInt(value);
/** An integer in the narrowest type at least as wide as asked for; past 64 bits it becomes a double. */
export function integerValue(value: bigint, atLeast: 'int' | 'long'): number | Long | Double {
  if (atLeast === 'int' && value <= maxInt && value >= minInt) return Number(value);
  return fitsLong(value) ? longValue(value) : doubleValue(Number(value));
}

/** The integer part of a finite number. */
export function toBigInt(value: unknown): bigint {
  if (value instanceof Decimal128) {
    const { coefficient, exponent } = decimalParts(value) as ExactDecimal;
    return exponent < 0 ? coefficient / 10n ** BigInt(-exponent) : coefficient * 10n ** BigInt(exponent);
  }
  return value instanceof Long ? value.toBigInt() : BigInt(Math.trunc(toDouble(value)));
}

/** A number as an integer, as MongoDB makes one of an option: doubles are cut, decimals rounded. */
export function coerceInteger(value: unknown): number {
  if (!(value instanceof Decimal128)) return Math.trunc(toDouble(value)) + 0;
  const exact = decimalParts(value);
  if (typeof exact === 'number') return exact;
  return Number(roundDecimal(exact, 0, 'halfEven')?.coefficient ?? toDouble(value));
}

/** A whole number of any numeric type as a JS integer, or undefined when it is not one. */
export function wholeNumber(value: unknown): number | undefined {
  if (numberKind(value) === undefined) return undefined;
  const double = toDouble(value);
  if (value instanceof Decimal128 && compareNumbers(value, double) !== 0) return undefined;
  return Number.isSafeInteger(double) ? double + 0 : undefined;
}

/** Exact across types; NaN equals NaN and comes before every other number. */
export function compareNumbers(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return compareDoubles(a, b);
  const longA = a instanceof Long;
  const longB = b instanceof Long;
  if (longA && longB) return a.compare(b);
  if (a instanceof Decimal128 || b instanceof Decimal128) {
    const x = exactDecimal(a);
    const y = exactDecimal(b);
    if (typeof x !== 'number' && typeof y !== 'number') return compareDecimals(x, y);
    return compareDoubles(typeof x === 'number' ? x : 0, typeof y === 'number' ? y : 0);
  }
  if (!longA && !longB) return compareDoubles(toDouble(a), toDouble(b));
  const x = longA ? a.toBigInt() : toDouble(a);
  const y = longB ? b.toBigInt() : toDouble(b);
  if (Number.isNaN(x)) return -1;
  if (Number.isNaN(y)) return 1;
  return x < y ? -1 : x > y ? 1 : 0;
}

function compareDoubles(a: number, b: number): number {
  if (a < b) return -1;
  if (a > b) return 1;
  if (a === b) return 0;
  return Number.isNaN(a) ? (Number.isNaN(b) ? 0 : -1) : 1;
}
