import { isDeepStrictEqual } from 'node:util';
import { isPlainObject, isTyped, parseIsoDate } from '../model/where.js';

/*
 * How the database would compare a value of a row with the operand of a filter, as far as both tell: a plain class holds numbers as
 * their digits and dates as text, and Parley sees neither the column nor what is stored. What they do not tell is undefined.
 */

export type RowVerdict = boolean | undefined;

/** Undefined where one that is undecided could change the result. */
export function someOf(verdicts: readonly RowVerdict[]): RowVerdict {
  if (verdicts.includes(true)) return true;
  return verdicts.includes(undefined) ? undefined : false;
}

export function everyOf(verdicts: readonly RowVerdict[]): RowVerdict {
  return not(someOf(verdicts.map(not)));
}

export const not = (verdict: RowVerdict): RowVerdict => (verdict === undefined ? undefined : !verdict);

/** More digits than any number that a database holds; a caller may write a million, whose arithmetic would stop the process. */
const DIGITS = /^(-?)(\d{1,400})(?:\.(\d{1,400}))?(?:[eE]([+-]?\d{1,4}))?$/;

/** Numbers that JSON does not have, and digits beyond any that a database holds. */
const OTHER_NUMBER = /^-?(?:NaN|Infinity|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

/** A number as an integer times a power of ten. */
interface Exact {
  readonly digits: bigint;
  readonly exponent: number;
  /** Digits before the point, without zeros in front. */
  readonly length: number;
}

function toExact(value: unknown): Exact | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null;
  const [, sign = '', whole, fraction = '', exponent = '0'] = DIGITS.exec(String(value)) ?? [];
  if (whole === undefined) return null;
  const power = Number(exponent);
  const length = (whole + fraction).replace(/^0+/, '').length + power - fraction.length;
  return { digits: BigInt(sign + whole + fraction), exponent: power - fraction.length, length };
}

const isNumeric = (value: unknown): boolean =>
  typeof value === 'number' ||
  (typeof value === 'string' && (DIGITS.test(value) || OTHER_NUMBER.test(value)));

const signOf = ({ digits }: Exact): number => (digits === 0n ? 0 : digits < 0n ? -1 : 1);

/** Less than zero, zero or more; undefined for what is no number with an order. */
function compareNumbers(one: unknown, other: unknown): number | undefined {
  const [a, b] = [toExact(one), toExact(other)];
  if (!a || !b) return undefined;
  const [sign, otherSign] = [signOf(a), signOf(b)];
  if (sign !== otherSign) return sign - otherSign;
  // Without arithmetic, so that an exponent costs nothing.
  if (a.length !== b.length) return sign * (a.length - b.length);
  const least = Math.min(a.exponent, b.exponent);
  const difference =
    a.digits * 10n ** BigInt(a.exponent - least) - b.digits * 10n ** BigInt(b.exponent - least);
  return difference === 0n ? 0 : difference < 0n ? -1 : 1;
}

/** The time of a date, or of a text that is one; null: neither. */
function toTime(value: unknown): number | null {
  const text = isTyped(value) && value.__type === 'Date' ? value['iso'] : value;
  return (typeof text === 'string' ? parseIsoDate(text)?.getTime() : undefined) ?? null;
}

const isDate = (value: unknown): boolean => isTyped(value) && value.__type === 'Date';

/** Whether two values are the same one, lists and objects as a whole. */
function isSame(one: unknown, other: unknown, isText: boolean): RowVerdict {
  if (one === other) return true;
  if (isText && (typeof one === 'string' || typeof other === 'string')) return false;
  if (isNumeric(one) && isNumeric(other)) {
    const order = compareNumbers(one, other);
    const areTexts = typeof one === 'string' && typeof other === 'string';
    // Two spellings of one number are one value in a column of numbers, and two in one of texts.
    return order === undefined || (order === 0 && areTexts) ? undefined : order === 0;
  }
  if (isDate(one) || isDate(other)) {
    const [time, otherTime] = [toTime(one), toTime(other)];
    return time !== null && time === otherTime;
  }
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && everyOf(one.map((entry, at) => isSame(entry, other[at], isText)));
  if (isTyped(one) || isTyped(other)) return isDeepStrictEqual(one, other);
  if (!isPlainObject(one) || !isPlainObject(other)) return false;
  const names = Object.keys(one);
  // Members in another order make another object.
  return (
    names.join('\0') === Object.keys(other).join('\0') &&
    everyOf(names.map((name) => isSame(one[name], other[name], isText)))
  );
}

/**
 * Whether the value, or an entry of the list, equals the operand. Null stands for a value that is absent, too.
 * @param isText texts of the column are texts, and never numbers
 */
export function equals(value: unknown, operand: unknown, isText: boolean): RowVerdict {
  if (operand === null)
    return value === undefined || value === null || (Array.isArray(value) && value.includes(null));
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  return someOf([value, ...entries].map((one) => isSame(one, operand, isText)));
}

/** The order of two values of one kind; null: of different kinds, which match no range; undefined: not decided. */
function compare(value: unknown, operand: unknown, isText: boolean): number | null | undefined {
  if (isText && (typeof value === 'string' || typeof operand === 'string'))
    return typeof value === typeof operand ? compareTexts(String(value), String(operand)) : null;
  if (operand === null) return value === null ? 0 : null;
  if (isNumeric(value) && isNumeric(operand)) {
    const order = compareNumbers(value, operand);
    if (typeof value !== 'string' || typeof operand !== 'string') return order;
    // As digits and as texts: where both orders agree, the column does not matter.
    const ofTexts = compareTexts(value, operand);
    return order !== undefined && Math.sign(order) === Math.sign(ofTexts) ? order : undefined;
  }
  if (isDate(value) || isDate(operand)) {
    const [time, other] = [toTime(value), toTime(operand)];
    if (time !== null && other !== null) return time - other;
    return typeof value === 'string' || typeof operand === 'string' ? undefined : null;
  }
  if (typeof value === 'string' && typeof operand === 'string') return compareTexts(value, operand);
  if (typeof value === 'boolean' && typeof operand === 'boolean') return Number(value) - Number(operand);
  return isTyped(value) || isTyped(operand) ? undefined : null;
}

const compareTexts = (one: string, other: string): number =>
  Buffer.compare(Buffer.from(one), Buffer.from(other));

/** Whether the value, or an entry of the list, is in the range. */
export const inRange =
  (isMet: (order: number) => boolean) =>
  (value: unknown, operand: unknown, isText: boolean): RowVerdict => {
    const entries: readonly unknown[] = Array.isArray(value) ? value : [value ?? null];
    const verdicts = entries.map((one) => {
      const order = compare(one, operand, isText);
      return order === undefined ? undefined : order !== null && isMet(order);
    });
    return someOf(verdicts);
  };
