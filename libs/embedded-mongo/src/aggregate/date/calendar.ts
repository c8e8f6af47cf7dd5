import { remember } from '../../bson/remember.js';
import { createDate } from '../../bson/times.js';
import { mongoError } from '../../errors.js';

/** Calendar arithmetic on local times, which are milliseconds read as if they were UTC. */

export const monthNames =
  'January February March April May June July August September October November December'.split(' ');

export const dayLength = 86_400_000;

/** A local time from calendar fields; fields out of range carry over, as in month 14. */
export function localTime(year: number, month: number, day: number, ...time: number[]): number {
  const [hour = 0, minute = 0, second = 0, millisecond = 0] = time;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return Number(date) + ((hour * 60 + minute) * 60 + second) * 1000 + millisecond;
}

export const dayOfYear = (local: Date): number =>
  Math.floor((Number(local) - localTime(local.getUTCFullYear(), 1, 1)) / dayLength) + 1;

/** Monday is 1, Sunday 7. */
export const isoDayOfWeek = (local: Date): number => local.getUTCDay() || 7;

/** Weeks begin on Sunday; days before the first Sunday are in week 0. */
export const sundayWeek = (local: Date): number => Math.floor((dayOfYear(local) + 6 - local.getUTCDay()) / 7);

/** The year and week of ISO 8601: a week belongs to the year of its Thursday. */
export function isoWeek(local: Date): { year: number; week: number } {
  const thursday = createDate(Number(local) + (4 - isoDayOfWeek(local)) * dayLength);
  return { year: thursday.getUTCFullYear(), week: Math.floor((dayOfYear(thursday) - 1) / 7) + 1 };
}

/** The local midnight that begins a day of an ISO week. */
export function isoWeekDate(year: number, week: number, day: number): number {
  const fourth = createDate(localTime(year, 1, 4));
  return Number(fourth) + ((week - 1) * 7 + (day - isoDayOfWeek(fourth))) * dayLength;
}

/** Moves by months; a day the target month lacks becomes its last. NaN past the last date. */
export function addMonths(local: number, months: number): number {
  const date = createDate(local);
  const month = date.getUTCFullYear() * 12 + date.getUTCMonth() + months;
  const year = Math.floor(month / 12);
  const inYear = month - year * 12 + 1;
  const lastDay = new Date(localTime(year, inYear + 1, 0)).getUTCDate();
  const time = ((local % dayLength) + dayLength) % dayLength;
  return localTime(year, inYear, Math.min(date.getUTCDate(), lastDay)) + time;
}

/** Months since year 0. */
export const monthNumber = (local: number): number => {
  const date = createDate(local);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
};

export type DateUnit =
  'year' | 'quarter' | 'month' | 'week' | 'day' | 'hour' | 'minute' | 'second' | 'millisecond';

/** Units of fixed length, in milliseconds. */
export const unitLength: Readonly<Partial<Record<DateUnit, number>>> = {
  week: 7 * dayLength,
  day: dayLength,
  hour: 3_600_000,
  minute: 60_000,
  second: 1000,
  millisecond: 1,
};

/** Units of the calendar, in months. */
export const unitMonths: Readonly<Partial<Record<DateUnit, number>>> = { year: 12, quarter: 3, month: 1 };

export const isDateUnit = (value: unknown): value is DateUnit =>
  typeof value === 'string' && (Object.hasOwn(unitLength, value) || Object.hasOwn(unitMonths, value));

/** A time zone: its distance from UTC at an instant, and the instant of a local time. */
export interface Zone {
  readonly name: string;
  /** Milliseconds to add to UTC for local time. */
  offsetAt(utc: number): number;
  /** The instant of a local wall-clock time; a time the clocks skip moves forward, a repeated one is the first. */
  toUtc(local: number): number;
}

const quarterHour = 900_000;
const day = 86_400_000;
const cachedOffsets = 20_000;
const cachedZones = 1_000;

export const utcZone: Zone = { name: 'UTC', offsetAt: () => 0, toUtc: (local) => local };

/** Reads an Olson name, `UTC`, `GMT` or an offset such as `+05:30`. Errors: 40485 for anything else. */
export const findZone = remember(cachedZones, (name): Zone =>
  /^(UTC|GMT)$/i.test(name) ? utcZone : (parseFixedZone(name) ?? olsonZone(name)),
);

function parseFixedZone(name: string): Zone | undefined {
  const match = /^([+-])(\d{2})(?::?(\d{2}))?$/.exec(name);
  if (!match) return undefined;
  const offset = (Number(match[2]) * 60 + Number(match[3] ?? 0)) * 60_000 * (match[1] === '-' ? -1 : 1);
  return { name, offsetAt: () => offset, toUtc: (local) => local - offset };
}

function olsonZone(name: string): Zone {
  const format = createFormatter(name);
  const offsets = new Map<number, number>();
  // Clocks change on the quarter hour, so one question to Intl answers for fifteen minutes.
  const offsetAt = (utc: number): number => {
    const bucket = Math.floor(utc / quarterHour);
    let offset = offsets.get(bucket);
    if (offset === undefined) {
      if (offsets.size >= cachedOffsets) offsets.clear();
      offsets.set(bucket, (offset = measureOffset(format, bucket * quarterHour)));
    }
    return offset;
  };
  const toUtc = (local: number): number => {
    const before = offsetAt(local - day);
    const candidates = [local - before, local - offsetAt(local + day)].sort((a, b) => a - b);
    return candidates.find((utc) => utc + offsetAt(utc) === local) ?? local - before;
  };
  return { name, offsetAt, toUtc };
}

function createFormatter(name: string): Intl.DateTimeFormat {
  try {
    // Names have one spelling, which Intl does not ask for.
    if (/^[^A-Z]/.test(name) || (name.includes('/') && !/[a-z]/.test(name))) throw new RangeError(name);
    return new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  } catch {
    throw mongoError(40485, `unrecognized time zone identifier: "${name}"`);
  }
}

function measureOffset(format: Intl.DateTimeFormat, utc: number): number {
  const parts: Record<string, string> = {};
  for (const part of format.formatToParts(createDate(utc))) parts[part.type] = part.value;
  const year = Number(parts['year']) * (parts['era'] === 'BC' ? -1 : 1) + (parts['era'] === 'BC' ? 1 : 0);
  const local = new Date(0);
  local.setUTCFullYear(year, Number(parts['month']) - 1, Number(parts['day']));
  local.setUTCHours(Number(parts['hour']), Number(parts['minute']), Number(parts['second']));
  return Number(local) - Math.floor(utc / 1000) * 1000;
}
