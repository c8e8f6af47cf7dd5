import { mongoError } from '../../errors.js';
import { createDate } from '../../bson/date.js';
import { dayOfYear, isoDayOfWeek, isoWeek, monthNames, sundayWeek } from './calendar.js';
import type { Zone } from './zone.js';

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
    if (!(year >= 0 && year <= 9999)) {
      throw mongoError(18537, `$dateToString is only defined on year 0-9999, tried to use year ${year}`);
    }
    return parts.map((part) => (typeof part === 'string' ? part : part(local, offset))).join('');
  };
}
