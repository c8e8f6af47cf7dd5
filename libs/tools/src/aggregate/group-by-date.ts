import { Injectable } from '@nestjs/common';
import { ValidateIf } from 'class-validator';
import type { GovernedClass, ParseRow } from '#data';
import { takeRoot } from '#policy';
import { admitsClass, refuseArgument } from '../arguments/argument-class.js';
import {
  CheckedByData,
  Choice,
  ClassName,
  Flag,
  RequiredChoice,
  RequiredText,
  Text,
  WholeNumber,
} from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { OBJECT, objectOf } from '../json-schema.js';
import { READ_ONLY, RESULTS_VIEW, type ToolCall } from '../tool.js';
import { isRepeated, orderOfKey, repeatsHours, writeOffset } from './repeated-hours.js';
import {
  accumulator,
  findColumn,
  cutNote,
  DRY_RUN,
  DRY_RUN_OUTPUT,
  dryRun,
  GROUP_SORTS,
  type GroupedColumn,
  findGroupedColumn,
  GROUPING_OUTPUT,
  type GroupSort,
  readKey,
  NO_KEY,
  type GroupOperation,
  OPERATIONS,
  reducesValues,
  reduction,
  sortStages,
} from './grouping.js';

const INTERVALS = ['year', 'month', 'week', 'day', 'hour', 'minute', 'second'] as const;
type Interval = (typeof INTERVALS)[number];

type Part = 'year' | 'month' | 'week' | 'day' | 'hour' | 'minute' | 'second';

/** The parts of an interval's key, coarsest first. Weeks begin on Sunday and count from 0. */
const PARTS: Readonly<Record<Interval, readonly Part[]>> = {
  year: ['year'],
  month: ['year', 'month'],
  week: ['year', 'week'],
  day: ['year', 'month', 'day'],
  hour: ['year', 'month', 'day', 'hour'],
  minute: ['year', 'month', 'day', 'hour', 'minute'],
  second: ['year', 'month', 'day', 'hour', 'minute', 'second'],
};

const OPERATORS: Readonly<Record<Part, string>> = {
  year: '$year',
  month: '$month',
  week: '$week',
  day: '$dayOfMonth',
  hour: '$hour',
  minute: '$minute',
  second: '$second',
};

/** The separator before each part of a key. */
const SEPARATORS: Readonly<Record<Part, string>> = {
  year: '',
  month: '-',
  week: '-W',
  day: '-',
  hour: ' ',
  minute: ':',
  second: ':',
};

/**
 * The group id of an interval. Values that are not dates count as no date: the database would otherwise fail the whole
 * pipeline at the first text.
 */
function dateGroupId(reference: string, interval: Interval, timezone: string | undefined): unknown {
  const date = { $cond: [{ $eq: [{ $type: reference }, 'date'] }, reference, null] };
  const operand = timezone === undefined ? date : { date, timezone };
  const part = (name: Part) => ({ [OPERATORS[name]]: operand });
  if (interval === 'year') return part('year');
  return {
    ...Object.fromEntries(PARTS[interval].map((name) => [name, part(name)])),
    ...(repeatsHours(interval, timezone) && { offset: { $dateToString: { date, timezone, format: '%z' } } }),
  };
}

const padPart = (name: Part, value: number): string => String(value).padStart(name === 'year' ? 4 : 2, '0');

/** The text of a group id, null when a part of it is missing. */
function dateKey(id: unknown, interval: Interval): string | null {
  const parts = interval === 'year' ? { year: id } : id;
  if (parts === null || typeof parts !== 'object') return null;
  let key = '';
  for (const name of PARTS[interval]) {
    const value = (parts as Partial<Record<Part, unknown>>)[name];
    if (typeof value !== 'number') return null;
    key += SEPARATORS[name] + padPart(name, value);
  }
  return interval === 'hour' ? `${key}:00` : key;
}

const MAX_GROUPS = 1000;
/** A name, or an offset as far as there are any. */
const ZONE = /^([A-Za-z_][A-Za-z_0-9+\-/]{0,63}|[+-]((0\d|1[0-3]):?[0-5]\d|14:?00))$/;

class GroupByDateArguments {
  static readonly admission = admitsClass;

  @ClassName() class_name!: string;
  @RequiredText('A date, such as createdAt.') field!: string;
  @Choice(OPERATIONS) operation: GroupOperation = 'count';
  @ValidateIf(reducesValues)
  @Text()
  value_field?: string;
  @CheckedByData(OBJECT) where?: unknown;
  @Choice(GROUP_SORTS, { blank: (text) => text === '' }) sort: GroupSort = 'key_asc';
  @WholeNumber({ min: 1, max: MAX_GROUPS, above: 'refuse' }, 'Default 200, max 1000.')
  limit = 200;
  @Flag(DRY_RUN) dry_run = false;
  @RequiredChoice(INTERVALS) interval!: Interval;
  @Text('Europe/Berlin or +02:00. Default UTC.') timezone?: string;
}

@Injectable()
export class GroupByDate {
  @Tool({
    name: 'group_by_date',
    title: 'Group by date',
    description:
      'As group_by, per interval of a date field, oldest first. Weeks begin on Sunday; empty periods are left out; no date is "null". Default filter applies.',
    view: RESULTS_VIEW,
    category: 'aggregate',
    use: 'find',
    timeout: 45,
    annotations: READ_ONLY,
    input: GroupByDateArguments,
    output: objectOf({ ...GROUPING_OUTPUT, ...DRY_RUN_OUTPUT }, ['class_name']),
  })
  async group(args: GroupByDateArguments, call: ToolCall) {
    const { class_name: className, where, interval, sort, limit } = args;
    const known = await call.records.admit(className);
    const column = findGroupedColumn(args.field, 'field', known);
    const reduced = reduction(args, known);
    const timezone = zone(args.timezone);
    const other = findOtherType(column, known);
    const stages = [
      { $group: { _id: dateGroupId(column.reference, interval, timezone), value: accumulator(reduced) } },
      ...sortStages(sort),
      { $limit: limit + 1 },
    ];
    const field = column.written;
    const { operation, value } = reduced;
    if (args.dry_run) {
      const parameters = { field, interval, operation, value_field: value?.written, timezone, sort, limit };
      return dryRun(className, { where, stages, parameters }, call);
    }
    const { rows } = await call.records.aggregate(className, stages, { where });
    const groups = sortGroups(
      rows.slice(0, limit).map((row) => group(row, interval, timezone)),
      sort,
    );
    return {
      class_name: className,
      field,
      interval,
      operation,
      group_count: groups.length,
      groups,
      ...(value && { value_field: value.written }),
      ...(timezone !== undefined && { timezone }),
      sort,
      ...(groups.some(({ key }) => key.endsWith(SPLIT_WEEK)) && { note: SPLIT_WEEK_NOTE }),
      ...(other !== null && {
        note: `'${column.written}' held values of type ${other} in the documents that were looked at: what is no date is under "null"`,
      }),
      ...(rows.length > limit && cutNote('groups', { limit, max: MAX_GROUPS })),
      limit,
    };
  }
}

function zone(written: string | undefined): string | undefined {
  const timezone = written?.trim();
  if (!timezone) return undefined;
  return ZONE.test(timezone)
    ? timezone
    : refuseArgument('timezone must be an Olson name such as Europe/Berlin, or an offset such as +02:00');
}

/**
 * The type of a field that is no date, as far as a sample shows; null: it may be one. An unreadable field reveals nothing, not even
 * its type: the policy refuses its name.
 */
function findOtherType({ written, wireName }: GroupedColumn, known: GovernedClass): string | null {
  const column = known.fields.includes(takeRoot(wireName)) ? findColumn(known, wireName) : undefined;
  if (!column || column.type === 'Date') return null;
  if (column.origin === 'sample') return column.type;
  return refuseArgument(`field '${written}' is of type ${column.type}; group_by_date needs a date`);
}

interface Group {
  readonly key: string;
  readonly value: unknown;
}

const SPLIT_WEEK = '-W00';
const SPLIT_WEEK_NOTE =
  'W00 has the days before the first Sunday of its year; the days of the same week before New Year are in the last week of the year before.';

function group(row: ParseRow, interval: Interval, timezone: string | undefined): Group {
  const id = readKey(row);
  const key = dateKey(id, interval) ?? NO_KEY;
  const offset = id === null || typeof id !== 'object' ? undefined : (id as { offset?: unknown }).offset;
  const isMarked =
    timezone !== undefined && typeof offset === 'string' && isRepeated(key, interval, { offset, timezone });
  return { key: isMarked ? key + writeOffset(offset) : key, value: row['value'] ?? null };
}

/** The database sorts keys by their parts with null first; the texts sort differently, and two of a repeated hour by time. */
function sortGroups(groups: readonly Group[], sort: GroupSort): readonly Group[] {
  if (!sort.startsWith('key')) return groups;
  const direction = sort === 'key_desc' ? -1 : 1;
  return groups
    .map((group) => ({ group, at: orderOfKey(group.key) }))
    .toSorted((a, b) => direction * (a.at < b.at ? -1 : Number(a.at > b.at)))
    .map(({ group }) => group);
}
