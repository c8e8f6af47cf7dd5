import { Long, Timestamp } from 'bson';
import { mongoError } from '../../errors.js';
import { createDate } from '../../bson/date.js';
import { firstKey, isDocument } from '../../bson/document.js';
import { numberKind, wholeNumber } from '../../bson/number.js';
import { typeName } from '../../bson/type-name.js';
import { toInstant, readZone } from '../date/arguments.js';
import { dayOfYear, isoDayOfWeek, isoWeek, isoWeekDate, localTime, sundayWeek } from '../date/calendar.js';
import { readNamedArguments, unaryOrNull, named } from '../arguments.js';
import { type Builder, type Evaluator, type OperatorCompiler, type OperatorTable } from '../evaluate.js';

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
  if (Array.isArray(argument) && argument.length !== 1) {
    throw mongoError(40536, `${name} takes one argument, not ${argument.length}`);
  }
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
      if (numberKind(value) === undefined || whole === undefined) {
        throw mongoError(40515, `'${part}' must evaluate to an integer, found ${typeName(value)}`);
      }
      if (i === 0 ? whole < 1 || whole > 9999 : Math.abs(whole) > 32768 * (i === 6 ? 1e9 : 1)) {
        throw mongoError(i === 0 ? 40523 : 31034, `'${part}' is out of range, found ${whole}`);
      }
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
};
