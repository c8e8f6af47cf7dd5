import { mongoError } from '../../errors.js';
import { createDate } from '../../bson/date.js';
import { remember } from '../../bson/remember.js';

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
  /^(UTC|GMT|Z)$/i.test(name) ? utcZone : (parseFixedZone(name) ?? olsonZone(name)),
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
    if (!/[A-Z]/.test(name) || (name.includes('/') && !/[a-z]/.test(name))) throw new RangeError(name);
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
