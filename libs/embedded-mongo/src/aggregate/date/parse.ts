import { mongoError } from '../../errors.js';
import { createDate } from '../../bson/date.js';
import { isoWeekDate, localTime, monthNames } from './calendar.js';
import { utcZone, findZone, type Zone } from './zone.js';

const isoForm =
  /^\s*(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?\s*(Z|[+-]\d{2}(?::?\d{2})?|UTC|GMT|[A-Za-z_]+\/[A-Za-z_/+-]+)?\s*$/i;
const basicForm =
  /^\s*(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(?:(\d{2})(?:\.(\d{1,9}))?)?)?(Z|[+-]\d{2}(?::?\d{2})?)?\s*$/i;

const failure = (text: string, reason: string): Error =>
  mongoError(241, `Error parsing date string '${text}'; ${reason}`);

/** Parses an ISO 8601 date. Errors: 241 for any other form, or for a zone both in the text and beside it. */
export function parseIsoDate(text: string, zone?: Zone): Date {
  const match = isoForm.exec(text) ?? basicForm.exec(text);
  if (!match) throw failure(text, 'only ISO 8601 dates are understood without a format');
  const [year, month, day, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => (part ? Number(part) : 0)) as [number, number, number, ...number[]];
  const millisecond = match[7] ? Number(match[7].padEnd(3, '0').slice(0, 3)) : 0;
  checkRanges(text, month, day, hour, minute, second);
  if (match[8] !== undefined && zone) {
    throw failure(
      text,
      'you cannot pass in a date/time string with time zone information together with a timezone argument',
    );
  }
  const local = localTime(year, month, day, hour, minute, second, millisecond);
  if (createDate(local).getUTCMonth() !== month - 1 && hour < 24)
    throw failure(text, 'the day is not in the month');
  return createDate((match[8] === undefined ? (zone ?? utcZone) : findZone(match[8])).toUtc(local));
}

function checkRanges(
  text: string,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
): void {
  if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 24 || minute > 59 || second > 60) {
    throw failure(text, 'a part is out of range');
  }
}

const patterns: Readonly<Record<string, string>> = {
  Y: '(?<Y>\\d{4})',
  m: '(?<m>\\d{1,2})',
  d: '(?<d>\\d{1,2})',
  H: '(?<H>\\d{1,2})',
  M: '(?<M>\\d{1,2})',
  S: '(?<S>\\d{1,2})',
  L: '(?<L>\\d{1,3})',
  G: '(?<G>\\d{4})',
  V: '(?<V>\\d{1,2})',
  u: '(?<u>[1-7])',
  j: '(?<j>\\d{1,3})',
  z: '(?<z>Z|[+-]\\d{2}:?\\d{2})',
  Z: '(?<Z>[+-]\\d{1,3})',
  b: '(?<b>[A-Za-z]{3})',
  B: '(?<B>[A-Za-z]+)',
  '%': '%',
};

const compiledFormats = new Map<string, RegExp>();

function formatPattern(format: string): RegExp {
  const known = compiledFormats.get(format);
  if (known) return known;
  const seen = new Set<string>();
  const source = format.replace(/%(.?)|[^%]/gs, (text, letter: string | undefined) => {
    if (letter === undefined) return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
    const pattern = Object.hasOwn(patterns, letter) ? patterns[letter] : undefined;
    if (pattern === undefined)
      throw mongoError(18536, `Invalid format character '%${letter}' in format string`);
    if (letter !== '%' && seen.has(letter))
      throw mongoError(18535, `'%${letter}' is given twice in the format string`);
    seen.add(letter);
    return pattern;
  });
  const compiled = new RegExp(`^${source}$`);
  if (compiledFormats.size > 200) compiledFormats.clear();
  compiledFormats.set(format, compiled);
  return compiled;
}

/** Parses a date by a format of `$dateFromString`. Errors: 241 when the text does not fit, 18536 for the format. */
export function parseWithFormat(text: string, format: string, zone?: Zone): Date {
  const parts = formatPattern(format).exec(text)?.groups;
  if (!parts) throw failure(text, 'the text does not fit the format');
  const number = (name: string, fallback: number): number =>
    parts[name] === undefined ? fallback : Number(parts[name]);
  const [hour, minute, second] = [number('H', 0), number('M', 0), number('S', 0)];
  const own = parts['z'] !== undefined || parts['Z'] !== undefined;
  if (own && zone) {
    throw failure(
      text,
      'you cannot pass in a date/time string with time zone information together with a timezone argument',
    );
  }
  const millisecond = parts['L'] === undefined ? 0 : Number(parts['L'].padEnd(3, '0'));
  const midnight = parseDay(text, parts, number);
  checkRanges(text, 1, 1, hour, minute, second);
  const local = midnight + ((hour * 60 + minute) * 60 + second) * 1000 + millisecond;
  if (parts['Z'] !== undefined) return createDate(local - Number(parts['Z']) * 60_000);
  const named = parts['z'] === undefined ? (zone ?? utcZone) : findZone(parts['z']);
  return createDate(named.toUtc(local));
}

function parseDay(
  text: string,
  parts: Record<string, string | undefined>,
  number: (name: string, fallback: number) => number,
): number {
  if (parts['G'] !== undefined) return isoWeekDate(number('G', 1970), number('V', 1), number('u', 1));
  if (parts['Y'] === undefined)
    throw failure(text, 'an incomplete date has been found, with elements missing: year');
  const year = number('Y', 1970);
  if (parts['j'] !== undefined) return localTime(year, 1, number('j', 1));
  const name = (parts['B'] ?? parts['b'])?.toLowerCase();
  const month =
    name === undefined
      ? number('m', 1)
      : monthNames.findIndex((full) => [full, full.slice(0, 3)].some((one) => one.toLowerCase() === name)) +
        1;
  const day = number('d', 1);
  checkRanges(text, month, day, 0, 0, 0);
  const midnight = localTime(year, month, day);
  if (createDate(midnight).getUTCMonth() !== month - 1) throw failure(text, 'the day is not in the month');
  return midnight;
}
