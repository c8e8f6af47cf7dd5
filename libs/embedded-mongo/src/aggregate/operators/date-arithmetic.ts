import { Long } from 'bson';
import { mongoError, type MongoError } from '../../errors.js';
import { createDate } from '../../bson/date.js';
import { wholeNumber } from '../../bson/number.js';
import { toInstant, readStartOfWeek, unitArgument, readZone } from '../date/arguments.js';
import {
  addMonths,
  dayLength,
  localTime,
  monthNumber,
  unitLength,
  unitMonths,
  type DateUnit,
} from '../date/calendar.js';
import type { Zone } from '../date/zone.js';
import { nullish, type OperatorCompiler, type OperatorTable } from '../evaluate.js';
import { named } from '../arguments.js';

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

const truncate = named(
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
    const weekStart = kind === 'week' ? readStartOfWeek(startOfWeek, name) : 0;
    return weekStart === null ? null : createDate(truncateDate(instant, kind, bin, zone, weekStart));
  },
);

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

/** Operators that move, compare and round dates. */
export const dateArithmeticOperators: OperatorTable = {
  $dateAdd: compileAdd(1),
  $dateSubtract: compileAdd(-1),
  $dateDiff: difference,
  $dateTrunc: truncate,
};
