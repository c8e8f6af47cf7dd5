import { Decimal128, Long } from 'mongodb';
import { type FieldSchema, parseIsoDate, isTyped, NON_FINITE } from '#policy';
import { listStoredForms } from './mixed-references.js';
import { exactNumber } from './parse-values.js';
import { DIGITS, isCertain, isSpelledDouble, parseDecimal, parseId } from './plain-scalars.js';

/*
 * A column of another program holds one value in several BSON types, and a sample of its documents shows only some of them. What
 * a row shows as one text or number is one value to conditions, so that a filter misses no row that it withholds.
 */

/**
 * Every form in which documents of a column may hold a value.
 * @param stored in the form that is known of the column
 * @param negated whether a match withholds rows: then also forms that rows show in another way, a number for its digits
 */
export function listForms(
  value: unknown,
  stored: unknown,
  field: FieldSchema | undefined,
  negated: boolean,
): unknown[] {
  if (field?.targetClass !== undefined) return listStoredForms(stored, field);
  if (isCertain(field)) return [stored];
  const isNumber = field?.type === 'Number';
  const isGuessed = field === undefined || field.origin === 'sample';
  if (typeof value === 'number')
    return [stored, ...formsOfNumber(value, stored), ...(negated ? [String(value)] : [])];
  if (typeof value === 'string')
    return [
      stored,
      ...(stored === value ? [] : [value]),
      ...formsOfText(value, stored),
      ...(isNumber || negated || isGuessed ? formsOfDigits(value, stored) : []),
      ...(negated || isGuessed ? formsOfDate(parseIsoDate(value), value) : []),
    ];
  if (isTyped(value) && value.__type === 'Date' && stored instanceof Date)
    return [stored, ...formsOfDate(stored)];
  return [stored];
}

/** A double and a decimal of the same digits differ, unless both are exact. */
function formsOfNumber(number: number, stored: unknown): unknown[] {
  if (Number.isSafeInteger(number) || !Number.isFinite(number)) return [];
  return typeof stored === 'number' ? [Decimal128.fromString(String(number))] : [number];
}

function formsOfDigits(text: string, stored: unknown): unknown[] {
  if (NON_FINITE.has(text)) return typeof stored === 'number' ? [] : [Number(text)];
  if (!DIGITS.test(text)) return [];
  const number = Number(text);
  const decimal = parseDecimal(text);
  // A double that these digits only come near is another number.
  const isDouble = typeof exactNumber(text) === 'number' || isSpelledDouble(text);
  return [
    ...(stored instanceof Decimal128 || !decimal ? [] : [decimal]),
    ...(stored === number || !isDouble ? [] : [number]),
  ];
}

/** The ids that a text may be. */
export function listIds(text: string): unknown[] {
  return (['objectId', 'uuid'] as const).flatMap((kind) => parseId(kind, text) ?? []);
}

const formsOfText = (text: string, stored: unknown): unknown[] =>
  listIds(text).filter((id) => !isSame(id, stored));

const isSame = (one: unknown, other: unknown): boolean =>
  (one as { _bsontype: unknown })._bsontype === (other as { _bsontype?: unknown } | null)?._bsontype;

/** A date as programs write it: whole, without its milliseconds, or without its time. Of a text: the date as well. */
function formsOfDate(date: Date | null, written?: string): unknown[] {
  if (!date || Number.isNaN(date.getTime())) return [];
  const iso = date.toISOString();
  const texts = [iso, iso.replace(/\.000Z$/, 'Z'), iso.replace(/T00:00:00\.000Z$/, '')];
  const others = [...new Set(texts)].filter((text) => text !== written);
  return written === undefined ? others : [date, ...others];
}

const isNumeric = (value: unknown): boolean =>
  typeof value === 'number' || value instanceof Decimal128 || value instanceof Long;

/** The bounds of values in every form: one of numbers, which have one order, one of texts, and each of the others. */
export function listBounds(forms: readonly unknown[], operator: string): unknown[] {
  const numbers = forms.filter(isNumeric);
  const texts = forms.filter((form) => typeof form === 'string').sort();
  const isLeast = operator === '$gte' || operator === '$lt';
  return [
    ...(numbers.length > 0 ? [chooseBound(numbers, operator)] : []),
    ...(texts.length > 0 ? [isLeast ? texts[0] : texts.at(-1)] : []),
    ...forms.filter((form) => !isNumeric(form) && typeof form !== 'string'),
  ];
}

/** Of a bound of numbers in two forms, the one that leaves both on the same side. */
export function chooseBound(forms: readonly unknown[], operator: string): unknown {
  const double = forms.find((form) => typeof form === 'number');
  const decimal = forms.find((form) => form instanceof Decimal128);
  if (double === undefined || decimal === undefined) return forms[0];
  const [lesser, greater] = isLess(decimal, double) ? [decimal, double] : [double, decimal];
  return operator === '$gte' || operator === '$lt' ? lesser : greater;
}

/** Compares the digits of the decimal with all of those of the double, which is a whole number over a power of two. */
function isLess(decimal: Decimal128, double: number): boolean {
  const [mantissa = '', exponent = '0'] = String(decimal).split('E');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const scale = Number(exponent) - fraction.length;
  let numerator = double;
  let halvings = 0n;
  for (; !Number.isInteger(numerator); numerator *= 2) halvings += 1n;
  const raised = (by: number) => 10n ** BigInt(Math.max(by, 0));
  return BigInt(whole + fraction) * raised(scale) * 2n ** halvings < BigInt(numerator) * raised(-scale);
}
