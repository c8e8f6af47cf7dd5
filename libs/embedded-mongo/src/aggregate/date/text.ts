import { remember } from '../../bson/remember.js';
import { createDate } from '../../bson/times.js';
import { mongoError } from '../../errors.js';
import {
  dayOfYear,
  findZone,
  isoDayOfWeek,
  isoWeek,
  isoWeekDate,
  localTime,
  monthNames,
  sundayWeek,
  utcZone,
  type Zone,
} from './calendar.js';

const pad = (value: number, width: number): string => String(value).padStart(width, '0');

type Part = (local: Date, offset: number) => string;

const specifiers: Readonly<Record<string, Part>> = {
  Y: (local) => pad(local.getUTCFullYear(), 4),
  m: (local) => pad(local.getUTCMonth() + 1, 2),
  d: (local) => pad(local.getUTCDate(), 2),
  H: (local) => pad(local.getUTCHours(), 2),
  M: (local) => pad(local.getUTCMinutes(), 2),
  S: (local) => pad(local.getUTCSeconds(), 2),
  L: (local) => pad(local.getUTCMilliseconds(), 3),
  j: (local) => pad(dayOfYear(local), 3),
  w: (local) => String(local.getUTCDay() + 1),
  u: (local) => String(isoDayOfWeek(local)),
  U: (local) => pad(sundayWeek(local), 2),
  V: (local) => pad(isoWeek(local).week, 2),
  G: (local) => pad(isoWeek(local).year, 4),
  b: (local) => (monthNames[local.getUTCMonth()] as string).slice(0, 3),
  B: (local) => monthNames[local.getUTCMonth()] as string,
  z: (_local, offset) => {
    const minutes = Math.abs(offset) / 60_000;
    return `${offset < 0 ? '-' : '+'}${pad(Math.floor(minutes / 60), 2)}${pad(Math.floor(minutes % 60), 2)}`;
  },
  Z: (_local, offset) => String(offset / 60_000),
  '%': () => '%',
};

/** How a date in UTC is written without a format. */
export const utcFormat = '%Y-%m-%dT%H:%M:%S.%LZ';

/** Compiles a format of `$dateToString`. Errors: 18536 for an unknown specifier, 18537 for years past 9999. */
export function compileDateFormat(format: string): (utc: number, zone: Zone) => string {
  const parts: (string | Part)[] = [];
  for (const match of format.matchAll(/%(.?)|[^%]+/gs)) {
    if (match[1] === undefined) {
      parts.push(match[0]);
      continue;
    }
    const part = Object.hasOwn(specifiers, match[1]) ? specifiers[match[1]] : undefined;
    if (!part) throw mongoError(18536, `Invalid format character '%${match[1]}' in format string`);
    parts.push(part);
  }
  return (utc, zone) => {
    const offset = zone.offsetAt(utc);
    const local = createDate(utc + offset);
    const year = local.getUTCFullYear();
    if (!(year >= 0 && year <= 9999))
      throw mongoError(18537, `$dateToString is only defined on year 0-9999, tried to use year ${year}`);
    return parts.map((part) => (typeof part === 'string' ? part : part(local, offset))).join('');
  };
}

type Parts = Readonly<Record<string, string | undefined>>;

const failure = (text: string, reason: string): Error =>
  mongoError(241, `Error parsing date string '${text}'; ${reason}`);

/** What a date may be written of, in any order, with the letters that a format has for the parts. */
const forms: readonly (readonly [RegExp, string])[] = [
  [/[ \t-\r,\0\u00a0]+|T(?=\d\d?:)|(?:sun|mon|tue|wed|thu|fri|sat)[a-z]*/iy, ''],
  [/([+-]?\d{4})-(\d{1,2})-(\d{1,2})(?!\d)/y, 'Ymd'],
  [/(\d{4})\/(\d{1,2})\/(\d{1,2})(?!\d)/y, 'Ymd'],
  [/(\d{4})(\d{2})(\d{2})(?!\d)/y, 'Ymd'],
  [/(\d{1,2})\/(\d{1,2})\/(\d{4})(?!\d)/y, 'mdY'],
  [/(\d{1,2})[-.](\d{1,2})[-.](\d{4})(?!\d)/y, 'dmY'],
  [/(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?/y, 'HMSL'],
  [/T(\d{2})(\d{2})(?:(\d{2})(?:\.(\d{1,9}))?)?(?!\d)/iy, 'HMSL'],
  [/(\d{1,2})\s*([ap])\.?m\.?(?![a-z])/iy, 'Hp'],
  [/([ap])\.?m\.?(?![a-z])/iy, 'p'],
  [/(\d{4})(?!\d)/y, 'Y'],
  [/(\d{1,2})(?:st|nd|rd|th)?(?![\da-z])/iy, 'd'],
  [/(Z|[+-]\d{2}(?::?\d{2})?|UTC|GMT|[a-z_]+\/[\w/+-]+)(?![\da-z])/iy, 'z'],
  [/([a-z]{3,9})\.?-?/iy, 'B'],
];

/** Parses a date as people and programs write it. Errors: 241 for any other form, or for a zone both in the text and beside it. */
export function parseDate(text: string, zone?: Zone): Date {
  const parts: Record<string, string> = {};
  const trimmed = text.replace(/^[ \t-\r\0\u00a0]+|[ \t-\r\0\u00a0]+$/g, '');
  for (let at = 0; at < trimmed.length;) {
    const found = findForm(trimmed, at);
    if (!found) throw failure(text, `nothing is known to begin with '${trimmed.slice(at, at + 20)}'`);
    at += found.match[0].length;
    for (const [i, letter] of [...found.letters].entries()) {
      const value = found.match[i + 1];
      if (value === undefined) continue;
      if (parts[letter] !== undefined) throw failure(text, 'a part is given twice');
      parts[letter] = value;
    }
  }
  if (parts['Y'] === undefined || parts['d'] === undefined || (parts['m'] ?? parts['B']) === undefined)
    throw failure(text, 'an incomplete date/time string has been found');
  return createParsed(text, parts, zone);
}

function findForm(text: string, at: number): { match: RegExpExecArray; letters: string } | undefined {
  for (const [form, letters] of forms) {
    form.lastIndex = at;
    const match = form.exec(text);
    if (match) return { match, letters };
  }
  return undefined;
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

const formatPattern = remember(200, (format): RegExp => {
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
  return new RegExp(`^${source}$`);
});

/** Parses a date by a format of `$dateFromString`. Errors: 241 when the text does not fit, 18536 for the format. */
export function parseWithFormat(text: string, format: string, zone?: Zone): Date {
  const parts = formatPattern(format).exec(text)?.groups;
  if (!parts) throw failure(text, 'the text does not fit the format');
  return createParsed(text, parts, zone);
}

function createParsed(text: string, parts: Parts, zone?: Zone): Date {
  const number = (name: string, fallback: number): number =>
    parts[name] === undefined ? fallback : Number(parts[name]);
  const half = parts['p']?.toLowerCase();
  const [hour, minute, second] = [number('H', 0), number('M', 0), number('S', 0)];
  if (zone && zone !== utcZone && (parts['z'] ?? parts['Z']) !== undefined)
    throw failure(text, 'a time zone in the text and a timezone beside it');
  const midnight = parseDay(text, parts, number);
  if (hour > (half ? 12 : 24) || minute > 59 || second > 60) throw failure(text, 'a part is out of range');
  const hours = half ? (hour % 12) + (half === 'p' ? 12 : 0) : hour;
  const millisecond = Math.trunc(number('L', 0) * 10 ** (3 - (parts['L']?.length ?? 0)));
  const local = midnight + ((hours * 60 + minute) * 60 + second) * 1000 + millisecond;
  if (parts['Z'] !== undefined) return createDate(local - Number(parts['Z']) * 60_000);
  const own = parts['z'] && (/^z$/i.test(parts['z']) ? utcZone : findZone(parts['z']));
  return createDate((own || zone || utcZone).toUtc(local));
}

function parseDay(text: string, parts: Parts, number: (name: string, fallback: number) => number): number {
  if (parts['G'] !== undefined) return isoWeekDate(number('G', 1970), number('V', 1), number('u', 1));
  if (parts['Y'] === undefined)
    throw failure(text, 'an incomplete date has been found, with elements missing: year');
  const year = number('Y', 1970);
  if (parts['j'] !== undefined) return localTime(year, 1, number('j', 0) + 1);
  const name = (parts['B'] ?? parts['b'])?.toLowerCase();
  const month =
    name === undefined
      ? number('m', 1)
      : monthNames.findIndex((full) => [full, full.slice(0, 3)].some((one) => one.toLowerCase() === name)) +
        1;
  const midnight = localTime(year, month, number('d', 1));
  // A day or a month that there is not carries over into another one.
  if (createDate(midnight).getUTCMonth() !== month - 1) throw failure(text, 'the day is not in the month');
  return midnight;
}
