import { Binary, BSONRegExp } from 'bson';
import type { Collation } from '../bson/collation.js';
import { compareValues, storedBytes, valuesEqual } from '../bson/compare.js';
import { firstKey, isDocument } from '../bson/document.js';
import { toKey } from '../bson/keys.js';
import {
  compareNumbers,
  fitsLong,
  longValue,
  numberKind,
  toBigInt,
  toDouble,
  wholeNumber,
} from '../bson/number.js';
import { printValue } from '../bson/text.js';
import { badValue } from '../errors.js';
import { type CompiledRegex, compileRegex, isRegex } from './regex.js';
import { typeRank } from '../bson/type-name.js';

/** A test of one value a path reached. */
export type ValueTest = (value: unknown) => boolean;

/** `$eq`: null also stands for a missing field. */
export function equalTo(wanted: unknown, collation?: Collation): ValueTest {
  if (wanted === null || wanted === undefined) return (value) => value === null || value === undefined;
  if (typeof wanted === 'boolean' || (typeof wanted === 'string' && !collation))
    return (value) => value === wanted;
  return (value) => value !== undefined && valuesEqual(value, wanted, collation);
}

type OrderOperator = '$gt' | '$gte' | '$lt' | '$lte';

const accepts: Record<OrderOperator, (order: number) => boolean> = {
  $gt: (order) => order > 0,
  $gte: (order) => order >= 0,
  $lt: (order) => order < 0,
  $lte: (order) => order <= 0,
};

/** Ordering operators compare within one type only; the exceptions are MinKey and MaxKey. */
export function testOrder(operator: OrderOperator, wanted: unknown, collation?: Collation): ValueTest {
  if (isRegex(wanted)) throw badValue(`Can't have RegEx as arg to predicate over field with ${operator}.`);
  const accept = accepts[operator];
  const rank = typeRank(wanted);
  if (wanted === null || wanted === undefined)
    return operator === '$gte' || operator === '$lte' ? equalTo(null) : () => false;
  const everyType = rank === -1 || rank === 127;
  const wantsNaN = isNaNValue(wanted);
  return (value) => {
    if (everyType) return accept(compareValues(value ?? null, wanted, collation));
    if (value === undefined) return false;
    if (typeRank(value) !== rank) return false;
    if (rank === 10 && (wantsNaN || isNaNValue(value)))
      return wantsNaN && isNaNValue(value) && operator.endsWith('e');
    return accept(compareValues(value, wanted, collation));
  };
}

const isNaNValue = (value: unknown): boolean =>
  numberKind(value) !== undefined && Number.isNaN(toDouble(value));

/** `$in`: a hash of keys, plus the patterns among the arguments. */
export function testOneOf(operator: string, wanted: unknown, collation?: Collation): ValueTest {
  if (!Array.isArray(wanted)) throw badValue(`${operator} needs an array`);
  const patterns: ValueTest[] = [];
  const keys = new Set<string>();
  for (const item of wanted) {
    if (isDocument(item) && firstKey(item)?.startsWith('$') && !isReference(firstKey(item) as string))
      throw badValue(`cannot nest $ under ${operator}`);
    if (isRegex(item)) patterns.push(matchesRegex(item));
    keys.add(toKey(item ?? null, collation));
  }
  return (value) => keys.has(toKey(value ?? null, collation)) || patterns.some((pattern) => pattern(value));
}

/** `$ref` and `$id` begin a reference, which is data, not an operator. */
export const isReference = (key: string): boolean => key === '$ref' || key === '$id' || key === '$db';

/** A pattern matches strings, and the identical pattern stored as a value. */
export function matchesRegex(pattern: unknown, options?: unknown): ValueTest {
  const regex = compileRegex(pattern, options);
  return (value) =>
    typeof value === 'string'
      ? holds(regex, value)
      : value instanceof BSONRegExp && value.pattern === regex.pattern && value.options === regex.options;
}

/** `$mod`: divisor and remainder truncated towards zero, as the value is. */
export function modulo(argument: unknown): ValueTest {
  if (!Array.isArray(argument)) throw badValue('malformed mod, needs to be an array');
  if (argument.length < 2) throw badValue('malformed mod, not enough elements');
  if (argument.length > 2) throw badValue('malformed mod, too many elements');
  const [divisor, rest] = argument.map((item, i) => {
    const double = toDouble(item);
    if (numberKind(item) === undefined)
      throw badValue(`malformed mod, ${i === 0 ? 'divisor' : 'remainder'} not a number`);
    if (!Number.isFinite(double)) throw badValue(`malformed mod, ${printValue(item)} is no whole number`);
    const whole = toBigInt(item);
    if (!fitsLong(whole)) throw badValue(`malformed mod, ${printValue(item)} is out of range`);
    return whole;
  }) as [bigint, bigint];
  if (divisor === 0n) throw badValue('divisor cannot be 0');
  return (value) => {
    if (numberKind(value) === undefined || !Number.isFinite(toDouble(value))) return false;
    return toBigInt(value) % divisor === rest;
  };
}

/** `$size` takes a whole number that is not negative. */
export function arrayOfSize(argument: unknown): ValueTest {
  const size = toDouble(argument);
  if (numberKind(argument) === undefined)
    throw badValue(`Failed to parse $size. Expected a number in: $size: ${String(argument)}`);
  if (wholeNumber(argument) === undefined)
    throw badValue(`Failed to parse $size. Expected an integer: $size: ${size}`);
  if (size < 0) throw badValue(`Failed to parse $size. Expected a non-negative number in: $size: ${size}`);
  return (value) => Array.isArray(value) && value.length === size;
}

/** As many as a document has room for. */
const mostBits = 16 * 1024 * 1024 * 8;

type BitOperator = '$bitsAllSet' | '$bitsAllClear' | '$bitsAnySet' | '$bitsAnyClear';

export function bitTest(operator: BitOperator, argument: unknown): ValueTest {
  const mask = bitMask(operator, argument);
  return (value) => {
    const bits = readBits(value);
    if (bits === undefined) return false;
    const set = bits & mask;
    switch (operator) {
      case '$bitsAllSet':
        return set === mask;
      case '$bitsAllClear':
        return set === 0n;
      case '$bitsAnySet':
        return set !== 0n;
      case '$bitsAnyClear':
        return set !== mask;
    }
  };
}

function bitMask(operator: string, argument: unknown): bigint {
  if (Array.isArray(argument))
    return argument.reduce<bigint>((mask, position) => {
      const bit = toDouble(position);
      if (!Number.isInteger(bit) || bit < 0 || bit > 0x7fffffff)
        throw badValue(`bit positions must be an integer >= 0 in ${operator}`);
      return mask | (1n << BigInt(Math.min(bit, mostBits)));
    }, 0n);
  const bits = readBits(argument);
  if (bits === undefined || bits < 0n)
    throw badValue(`${operator} takes an Array, a number, or a BinData but received: ${String(argument)}`);
  return bits;
}

/** The bits of a value; a number has endless copies of its sign, which a bigint has as well. */
function readBits(value: unknown): bigint | undefined {
  if (value instanceof Binary) {
    const all = Buffer.from(storedBytes(value));
    return all.length === 0 ? 0n : BigInt(`0x${all.reverse().toString('hex')}`);
  }
  const double = toDouble(value);
  if (!Number.isFinite(double)) return undefined;
  const whole = toBigInt(value);
  return fitsLong(whole) && compareNumbers(value, longValue(whole)) === 0 ? whole : undefined;
}

/** A text that the pattern cannot be tried on does not match, as in MongoDB where the matcher gives up. */
function holds(regex: CompiledRegex, text: string): boolean {
  try {
    return regex.test(text);
  } catch {
    return false;
  }
}
