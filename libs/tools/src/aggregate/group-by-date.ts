import { Injectable } from '@nestjs/common';
import type { GovernedClass, ParseRow } from '#data';
import {
  type Arguments,
  boolean,
  oneOf,
  optionalString,
  refuseArgument,
  requiredString,
} from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, described, objectOf, STRING } from '../json-schema.js';
import { READ_ONLY } from '../read-only-annotations.js';
import type { ToolCall } from '../tool.js';
import { dateGroupId, dateKey, type Interval, INTERVALS } from './date-intervals.js';
import { dryRun } from './dry-run.js';
import { keyOf } from './group-keys.js';
import {
  accumulator,
  type GroupedColumn,
  cutNote,
  groupedColumn,
  groupLimit,
  type GroupSort,
  groupSort,
  reduction,
  sortStages,
} from './grouping-arguments.js';
import { DRY_RUN_OUTPUT, GROUPING_INPUT, GROUPING_OUTPUT } from './grouping-schema.js';
import { RESULTS_VIEW } from '../views.js';

const LIMIT = { default: 200, max: 1000 };
const NO_KEY = 'null';
const ZONE = /^([A-Za-z_][A-Za-z_0-9+\-/]{0,63}|[+-]\d{2}:?\d{2})$/;
const NEVER_DATES: ReadonlySet<unknown> = new Set(['Pointer', 'Array', 'Relation']);

@Injectable()
export class GroupByDate {
  @Tool({
    name: 'group_by_date',
    title: 'Group by date',
    description:
      'Counts the objects of a class per year, month, week, day, hour, minute or second of a date field, or sums, ' +
      'averages, or takes min or max of another. Oldest first unless sorted otherwise; weeks begin on Sunday. Periods ' +
      'without objects are not listed; values that are no date are the group "null". The class\'s default filter always applies.',
    view: RESULTS_VIEW,
    category: 'aggregate',
    timeout: 45,
    annotations: READ_ONLY,
    input: argumentsOf(
      {
        ...GROUPING_INPUT,
        field: described(STRING, 'A date field, such as createdAt.'),
        interval: { type: 'string', enum: INTERVALS },
        timezone: described(STRING, 'Where days begin: Europe/Berlin, +02:00. Default UTC.'),
      },
      ['class_name', 'field', 'interval'],
    ),
    output: objectOf({ ...GROUPING_OUTPUT, interval: STRING, timezone: STRING, ...DRY_RUN_OUTPUT }, [
      'class_name',
    ]),
  })
  async group(args: Arguments, call: ToolCall) {
    const className = requiredString(args, 'class_name');
    const known = await call.records.admit(className);
    const column = groupedColumn(args, 'field', known);
    requiredString(args, 'interval');
    const interval = oneOf(args, 'interval', INTERVALS, 'day');
    const reduced = reduction(args, known);
    const limit = groupLimit(args, LIMIT);
    const sort = groupSort(args) ?? 'key_asc';
    const timezone = zone(args);
    refuseOtherTypes(column, known);
    const { where } = args;
    const stages = [
      { $group: { _id: dateGroupId(column.reference, interval, timezone), value: accumulator(reduced) } },
      ...sortStages(sort),
      { $limit: limit + 1 },
    ];
    const field = column.written;
    const { operation, value } = reduced;
    if (boolean(args, 'dry_run', false)) {
      const parameters = { field, interval, operation, value_field: value?.written, timezone, sort, limit };
      return dryRun(className, { where, stages, parameters }, call);
    }
    const { rows } = await call.records.aggregate(className, stages, { where });
    const groups = sorted(
      rows.slice(0, limit).map((row) => group(row, interval)),
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
      ...(rows.length > limit && cutNote('groups', { limit, max: LIMIT.max })),
      limit,
    };
  }
}

function zone(args: Arguments): string | undefined {
  const timezone = optionalString(args, 'timezone')?.trim();
  if (!timezone) return undefined;
  return ZONE.test(timezone)
    ? timezone
    : refuseArgument('timezone must be an Olson name such as Europe/Berlin, or an offset such as +02:00');
}

/** Of a field that may not be read nothing is told, its type neither: that refusal comes from where names are judged. */
function refuseOtherTypes({ written, wireName }: GroupedColumn, { schema, fields }: GovernedClass): void {
  const type = fields.includes(wireName) ? schema.fields.get(wireName)?.type : undefined;
  if (NEVER_DATES.has(type))
    refuseArgument(`field '${written}' is of type ${type}; group_by_date needs a date`);
}

interface Group {
  readonly key: string;
  readonly value: unknown;
}

function group(row: ParseRow, interval: Interval): Group {
  return { key: dateKey(keyOf(row), interval) ?? NO_KEY, value: row['value'] ?? null };
}

/** The database orders keys by their parts and null before all; the texts have an order of their own. */
function sorted(groups: readonly Group[], sort: GroupSort): readonly Group[] {
  if (!sort.startsWith('key')) return groups;
  const direction = sort === 'key_desc' ? -1 : 1;
  return groups.toSorted((a, b) => direction * (a.key < b.key ? -1 : Number(a.key > b.key)));
}
