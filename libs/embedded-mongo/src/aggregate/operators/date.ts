import { Long, ObjectId, Timestamp } from 'bson';
import { type Document, firstKey, isDocument } from '../../bson/document.js';
import { numberKind, wholeNumber } from '../../bson/number.js';
import { remember } from '../../bson/remember.js';
import { printValue } from '../../bson/text.js';
import { createDate } from '../../bson/times.js';
import { typeName } from '../../bson/type-name.js';
import { mongoError, type MongoError } from '../../errors.js';
import { named, readNamedArguments, requireText, unaryOrNull } from '../arguments.js';
import type { DateUnit, Zone } from '../date/calendar.js';
import {
  addMonths,
  dayLength,
  dayOfYear,
  findZone,
  isDateUnit,
  isoDayOfWeek,
  isoWeek,
  isoWeekDate,
  localTime,
  monthNumber,
  sundayWeek,
  unitLength,
  unitMonths,
  utcZone,
} from '../date/calendar.js';
import { compileDateFormat, parseDate, parseWithFormat, utcFormat } from '../date/text.js';
import type { Builder, Evaluator, OperatorCompiler, OperatorTable } from '../evaluate.js';
import { isConstant, nullish } from '../evaluate.js';

/** The instant of a date, an ObjectId or a timestamp; null stays null. Errors: 16006 for other types. */
function toInstant(value: unknown): number | null {
  if (nullish(value)) return null;
  if (value instanceof Date) return Number(value);
  if (value instanceof ObjectId) return secondsOfId(value) * 1000;
  if (value instanceof Timestamp) return value.t * 1000;
  throw mongoError(16006, `can't convert from BSON type ${typeName(value)} to Date`);
}

/** The seconds in an ObjectId are signed: they end in 2038. */
export const secondsOfId = (id: ObjectId): number => (Number(id.getTimestamp()) / 1000) | 0;

/** The zone an argument names, UTC where it is left out; null when it is null. Errors: 40517 when it is no string. */
function readZone(name: unknown): Zone | null {
  if (name === undefined) return utcZone;
  if (name === null) return null;
  if (typeof name !== 'string')
    throw mongoError(40517, `timezone must evaluate to a string, found ${typeName(name)}`);
  return findZone(name);
}

/** A unit of `$dateAdd` and its kin; null when it is null. Errors: 9 for an unknown one. */
function unitArgument(value: unknown, name: string): DateUnit | null {
  if (nullish(value)) return null;
  if (!isDateUnit(value)) throw mongoError(9, `${name} has no time unit ${printValue(value)}`);
  return value;
}

const weekDays = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];

/** The day a week begins on, Sunday being 0, also where it is left out; null when it is null. Errors: 9 for an unknown name. */
function readStartOfWeek(value: unknown, name: string): number | null {
  if (value === undefined) return 0;
  if (value === null) return null;
  const text = typeof value === 'string' ? value.toLowerCase() : '';
  const day = weekDays.findIndex((full) => full === text || full.slice(0, 3) === text);
  if (day < 0) throw mongoError(9, `${name} has no day of the week ${printValue(value)}`);
  return day;
}

const formatter = remember(200, compileDateFormat);

const toString: OperatorCompiler = (argument, builder, name) => {
  const parts = readNamedArguments(argument, builder, name, ['date'], ['format', 'timezone', 'onNull']);
  return (scope) => {
    const instant = toInstant(parts.date(scope));
    const zone = readZone(parts.timezone && (parts.timezone(scope) ?? null));
    const format = parts.format?.(scope);
    if (instant === null) return parts.onNull ? parts.onNull(scope) : null;
    if (zone === null || (parts.format && nullish(format))) return null;
    if (format !== undefined && typeof format !== 'string')
      throw mongoError(18533, `${name} requires that 'format' be a string, found: ${typeName(format)}`);
    const standard = zone === utcZone ? utcFormat : '%Y-%m-%dT%H:%M:%S.%L';
    return formatter(typeof format === 'string' ? format : standard)(instant, zone);
  };
};

const fromString: OperatorCompiler = (argument, builder, name) => {
  const parts = readNamedArguments(
    argument,
    builder,
    name,
    ['dateString'],
    ['format', 'timezone', 'onNull', 'onError'],
  );
  return (scope) => {
    const text = parts.dateString(scope);
    const zone = parts.timezone && readZone(parts.timezone(scope) ?? null);
    const format = parts.format?.(scope);
    if (nullish(text)) return parts.onNull ? parts.onNull(scope) : null;
    if (zone === null || (parts.format && nullish(format))) return null;
    if (parts.format) requireText(format, `'format' of ${name}`, 40684);
    try {
      if (typeof text !== 'string')
        throw mongoError(241, `${name} requires a string as 'dateString', not ${typeName(text)}`);
      return typeof format === 'string' ? parseWithFormat(text, format, zone) : parseDate(text, zone);
    } catch (error) {
      if (parts.onError) return parts.onError(scope);
      throw error;
    }
  };
};

const overflow = (): MongoError => mongoError(5166406, 'dateAdd overflowed');

/** Days and longer move the wall clock, hours and shorter move the instant. Errors: 5166406 past the last date. */
export function addToDate(instant: number, unit: DateUnit, amount: number, zone: Zone): Date {
  const months = unitMonths[unit];
  const length = unitLength[unit] ?? 0;
  if (months === undefined && length < dayLength) return createDate(instant + amount * length, overflow);
  const local = instant + zone.offsetAt(instant);
  const moved = months === undefined ? local + amount * length : addMonths(local, amount * months);
  return createDate(zone.toUtc(Number(createDate(moved, overflow))), overflow);
}

const compileAdd = (direction: 1 | -1): OperatorCompiler =>
  named(['startDate', 'unit', 'amount'], ['timezone'], ({ startDate, unit, amount, timezone }, name) => {
    const instant = toInstant(startDate);
    const kind = unitArgument(unit, name);
    const zone = readZone(timezone);
    if (instant === null || kind === null || zone === null || nullish(amount)) return null;
    const whole = wholeNumber(amount);
    if (whole === undefined) throw mongoError(5166405, `${name} expects integer amount of time units`);
    return addToDate(instant, kind, whole * direction, zone);
  });

const difference = named(
  ['startDate', 'endDate', 'unit'],
  ['timezone', 'startOfWeek'],
  ({ startDate, endDate, unit, timezone, startOfWeek }, name) => {
    const [start, end] = [toInstant(startDate), toInstant(endDate)];
    const kind = unitArgument(unit, name);
    const zone = readZone(timezone);
    if (start === null || end === null || kind === null || zone === null) return null;
    const weekStart = kind === 'week' ? readStartOfWeek(startOfWeek, name) : 0;
    if (weekStart === null) return null;
    return Long.fromNumber(unitNumber(end, kind, zone, weekStart) - unitNumber(start, kind, zone, weekStart));
  },
);

/** How many whole units lie between an epoch and an instant: a difference counts the boundaries crossed. */
function unitNumber(instant: number, unit: DateUnit, zone: Zone, weekStart: number): number {
  const offset = zone.offsetAt(instant);
  const months = unitMonths[unit];
  if (months !== undefined) return Math.floor(monthNumber(instant + offset) / months);
  const length = unitLength[unit] as number;
  if (unit === 'day') return Math.floor((instant + offset) / length);
  // The epoch was a Thursday.
  if (unit === 'week') return Math.floor((instant + offset + (4 - weekStart) * dayLength) / length);
  return Math.floor((instant + (offset % length)) / length);
}

const truncateValues = named(
  ['date', 'unit'],
  ['binSize', 'timezone', 'startOfWeek'],
  ({ date, unit, binSize = 1, timezone, startOfWeek }, name) => {
    const instant = toInstant(date);
    const kind = unitArgument(unit, name);
    const zone = readZone(timezone);
    if (instant === null || kind === null || zone === null || binSize === null) return null;
    const bin = wholeNumber(binSize);
    if (bin === undefined || bin < 1)
      throw mongoError(5439018, `${name} requires 'binSize' to be a positive integer`);
    const inMonths = unitMonths[kind] !== undefined;
    if (inMonths ? bin > 1e11 : (unitLength[kind] ?? 0) * bin >= 2 ** 63)
      throw mongoError(inMonths ? 5439006 : 5439002, `${name} has no bins of ${bin} units`);
    const weekStart = kind === 'week' ? readStartOfWeek(startOfWeek, name) : 0;
    return weekStart === null ? null : createDate(truncateDate(instant, kind, bin, zone, weekStart));
  },
);

/** A constant null decides, unless all is constant: then the start of the week counts for weeks alone. */
const truncate: OperatorCompiler = (argument, builder, name) => {
  const run = truncateValues(argument, builder, name);
  const { startOfWeek, ...others } = argument as Document;
  return startOfWeek === null && !Object.values(others).every(isConstant) ? () => null : run;
};

const reference = localTime(2000, 1, 1);

/** Bins are counted from the year 2000; it began on a Saturday, so weeks are counted from the next start of week. */
function truncateDate(instant: number, unit: DateUnit, bin: number, zone: Zone, weekStart: number): number {
  const months = unitMonths[unit];
  const local = instant + zone.offsetAt(instant);
  if (months !== undefined) {
    const size = months * bin;
    const start = Math.floor((monthNumber(local) - monthNumber(reference)) / size) * size;
    return zone.toUtc(addMonths(reference, start));
  }
  const size = (unitLength[unit] as number) * bin;
  if (unit === 'day' || unit === 'week') {
    const origin = reference + (unit === 'week' ? ((weekStart + 1) % 7) * dayLength : 0);
    return zone.toUtc(origin + Math.floor((local - origin) / size) * size);
  }
  // Hours begin where the clock on the wall says so, also at offsets of half an hour.
  return instant - ((((local - reference) % size) + size) % size);
}

/** The argument is a date expression, or `{date, timezone}`. */
function dateAndZone(
  argument: unknown,
  builder: Builder,
  name: string,
): { date: Evaluator; timezone: Evaluator | undefined } {
  if (isDocument(argument) && !firstKey(argument)?.startsWith('$')) {
    const parts = readNamedArguments(argument, builder, name, ['date'], ['timezone']);
    return { date: parts.date, timezone: parts.timezone };
  }
  if (Array.isArray(argument) && argument.length !== 1)
    throw mongoError(40536, `${name} takes one argument, not ${argument.length}`);
  return { date: builder.compile(Array.isArray(argument) ? argument[0] : argument), timezone: undefined };
}

const field =
  (read: (local: Date) => number, long = false): OperatorCompiler =>
  (argument, builder, name) => {
    const { date, timezone } = dateAndZone(argument, builder, name);
    return (scope) => {
      const instant = toInstant(date(scope));
      const zone = readZone(timezone && (timezone(scope) ?? null));
      if (instant === null || zone === null) return null;
      const value = read(createDate(instant + zone.offsetAt(instant)));
      return long ? Long.fromNumber(value) : value;
    };
  };

const toParts = named(['date'], ['timezone', 'iso8601'], ({ date, timezone, iso8601 }) => {
  const instant = toInstant(date);
  const zone = readZone(timezone);
  if (instant === null || zone === null || iso8601 === null) return null;
  if (iso8601 !== undefined && typeof iso8601 !== 'boolean')
    throw mongoError(40521, `iso8601 must evaluate to a bool, found ${typeName(iso8601)}`);
  const local = createDate(instant + zone.offsetAt(instant));
  const time = {
    hour: local.getUTCHours(),
    minute: local.getUTCMinutes(),
    second: local.getUTCSeconds(),
    millisecond: local.getUTCMilliseconds(),
  };
  if (!iso8601)
    return { year: local.getUTCFullYear(), month: local.getUTCMonth() + 1, day: local.getUTCDate(), ...time };
  const { year, week } = isoWeek(local);
  return { isoWeekYear: year, isoWeek: week, isoDayOfWeek: isoDayOfWeek(local), ...time };
});

const timeParts = ['hour', 'minute', 'second', 'millisecond'] as const;
const calendarParts = ['year', 'month', 'day'] as const;
const isoParts = ['isoWeekYear', 'isoWeek', 'isoDayOfWeek'] as const;
type PartName = (typeof timeParts)[number] | (typeof calendarParts)[number] | (typeof isoParts)[number];

const fromParts: OperatorCompiler = (argument, builder, name) => {
  const iso = isDocument(argument) && Object.hasOwn(argument, 'isoWeekYear');
  const [year, ...rest] = iso ? isoParts : calendarParts;
  const order: readonly PartName[] = [year, ...rest, ...timeParts];
  const defaults = [1970, 1, 1, 0, 0, 0, 0];
  return named([year], [...rest, ...timeParts, 'timezone'], (parts) => {
    const zone = readZone(parts.timezone);
    if (zone === null) return null;
    const values: number[] = [];
    for (const [i, part] of order.entries()) {
      const value = parts[part] === undefined ? defaults[i] : parts[part];
      if (value === null) return null;
      const whole = wholeNumber(value);
      if (numberKind(value) === undefined || whole === undefined)
        throw mongoError(40515, `'${part}' must evaluate to an integer, found ${typeName(value)}`);
      if (i === 0 ? whole < 1 || whole > 9999 : Math.abs(whole) > 32768 * (i === 6 ? 1e9 : 1))
        throw mongoError(i === 0 ? 40523 : 31034, `'${part}' is out of range, found ${whole}`);
      values.push(whole);
    }
    const [a, b, c, ...time] = values as [number, number, number, ...number[]];
    const midnight = iso ? isoWeekDate(a, b, c) : localTime(a, b, c);
    return createDate(zone.toUtc(midnight + localTime(1970, 1, 1, ...time)));
  })(argument, builder, name);
};

const timestampPart = (read: (value: Timestamp) => number): OperatorCompiler =>
  unaryOrNull((value, name) => {
    if (!(value instanceof Timestamp))
      throw mongoError(5687301, `${name} argument must be a timestamp, but is ${typeName(value)}`);
    return Long.fromNumber(read(value));
  });

/** Operators that read the fields of dates, and build dates from fields. */

export const dateOperators: OperatorTable = {
  $year: field((local) => local.getUTCFullYear()),
  $month: field((local) => local.getUTCMonth() + 1),
  $dayOfMonth: field((local) => local.getUTCDate()),
  $dayOfWeek: field((local) => local.getUTCDay() + 1),
  $dayOfYear: field(dayOfYear),
  $hour: field((local) => local.getUTCHours()),
  $minute: field((local) => local.getUTCMinutes()),
  $second: field((local) => local.getUTCSeconds()),
  $millisecond: field((local) => local.getUTCMilliseconds()),
  $week: field(sundayWeek),
  $isoWeek: field((local) => isoWeek(local).week),
  $isoWeekYear: field((local) => isoWeek(local).year, true),
  $isoDayOfWeek: field(isoDayOfWeek),
  $dateToParts: toParts,
  $dateFromParts: fromParts,
  $tsSecond: timestampPart((value) => value.t),
  $tsIncrement: timestampPart((value) => value.i),
  $dateToString: toString,
  $dateFromString: fromString,
  $dateAdd: compileAdd(1),
  $dateSubtract: compileAdd(-1),
  $dateDiff: difference,
  $dateTrunc: truncate,
};
