import { Injectable } from '@nestjs/common';
import { ValidateIf } from 'class-validator';
import { admitsClass } from '../arguments/argument-class.js';
import {
  CheckedByData,
  Choice,
  ClassName,
  Flag,
  RequiredText,
  Text,
  WholeNumber,
} from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { BOOLEAN, INTEGER, listOf, OBJECT, objectOf, STRING, VALUE } from '../json-schema.js';
import { READ_ONLY, RESULTS_VIEW, type ToolCall } from '../tool.js';
import {
  accumulator,
  cutNote,
  GROUPING_OUTPUT,
  DRY_RUN,
  DRY_RUN_OUTPUT,
  dryRun,
  GROUP_SORTS,
  findGroupedColumn,
  type GroupSort,
  NO_KEY,
  type GroupOperation,
  OPERATIONS,
  reducesValues,
  reduction,
  showKeys,
  sortStages,
} from './grouping.js';

const MAX_GROUPS = 1000;

class GroupByArguments {
  static readonly admission = admitsClass;

  @ClassName() class_name!: string;
  @RequiredText('One name, no path.') field!: string;
  @Choice(OPERATIONS) operation: GroupOperation = 'count';
  @ValidateIf(reducesValues)
  @Text()
  value_field?: string;
  @CheckedByData(OBJECT) where?: unknown;
  @Choice(GROUP_SORTS, { blank: (text) => text === '' }) sort?: GroupSort;
  @WholeNumber({ min: 1, max: MAX_GROUPS, above: 'refuse' }, 'Default 200, max 1000.')
  limit = 200;
  @Flag(DRY_RUN) dry_run = false;
  @Flag('true: count elements of lists.') flatten_arrays = false;
}

@Injectable()
export class GroupBy {
  @Tool({
    name: 'group_by',
    title: 'Group by a field',
    description:
      'Counts objects per value of a field, or sums, averages, or takes min or max of value_field. For time use group_by_date, for joins and several fields aggregate. Default filter applies. No value is "null"; pointers group by id.',
    view: RESULTS_VIEW,
    category: 'aggregate',
    use: 'find',
    timeout: 45,
    annotations: READ_ONLY,
    input: GroupByArguments,
    output: objectOf({ ...GROUPING_OUTPUT, pointer_class: STRING, ...DRY_RUN_OUTPUT }, ['class_name']),
  })
  async group(args: GroupByArguments, call: ToolCall) {
    const { class_name: className, where, sort, limit, flatten_arrays: flatten } = args;
    const known = await call.records.admit(className);
    const column = findGroupedColumn(args.field, 'field', known);
    const reduced = reduction(args, known);
    const stages = [
      ...(flatten ? [{ $unwind: column.reference }] : []),
      { $group: { _id: column.reference, value: accumulator(reduced) } },
      ...sortStages(sort),
      { $limit: limit + 1 },
    ];
    const field = column.written;
    const { operation, value } = reduced;
    if (args.dry_run) {
      const parameters = {
        field,
        operation,
        value_field: value?.written,
        sort,
        limit,
        flatten_arrays: flatten,
      };
      return dryRun(className, { where, stages, parameters }, call);
    }
    const { rows } = await call.records.aggregate(className, stages, { where });
    const kept = rows.slice(0, limit);
    const { keys, pointerClass } = showKeys(kept, known, column.wireName);
    return {
      class_name: className,
      field,
      operation,
      ...(value && { value_field: value.written }),
      group_count: kept.length,
      groups: kept.map((row, index) => ({ key: keys[index] ?? NO_KEY, value: row['value'] ?? null })),
      ...(pointerClass !== null && { pointer_class: pointerClass }),
      ...(flatten && { flatten_arrays: true }),
      ...(sort && { sort }),
      ...(rows.length > limit && cutNote('groups', { limit, max: MAX_GROUPS })),
      ...(keys.includes(NO_KEY) && {
        note: `Some objects have the text "null": count_objects with where {"${field}":null} counts those without a value.`,
      }),
      limit,
    };
  }
}

const MAX_VALUES = 5000;
const VALUE_SORTS = ['asc', 'desc', 'none'] as const;

class DistinctArguments {
  static readonly admission = admitsClass;

  @ClassName() class_name!: string;
  @RequiredText() field!: string;
  @CheckedByData(OBJECT) where?: unknown;
  @Choice(VALUE_SORTS, { blank: (text) => text.trim() === '' })
  sort: (typeof VALUE_SORTS)[number] = 'none';
  @WholeNumber({ min: 1, max: MAX_VALUES, above: 'refuse' }, 'Default 1000, max 5000.')
  limit = 1000;
  @Flag(DRY_RUN) dry_run = false;
}

@Injectable()
export class Distinct {
  @Tool({
    name: 'distinct',
    title: 'Distinct values',
    description:
      'The different values of one field, a list as one, pointers as ids. Counts: group_by. Default filter applies.',
    category: 'aggregate',
    use: 'find',
    timeout: 30,
    annotations: READ_ONLY,
    input: DistinctArguments,
    output: objectOf(
      {
        class_name: STRING,
        count: INTEGER,
        values: listOf(VALUE),
        pointer_class: STRING,
        truncated: BOOLEAN,
        ...DRY_RUN_OUTPUT,
      },
      ['class_name'],
    ),
  })
  async distinct(args: DistinctArguments, call: ToolCall) {
    const { class_name: className, where, limit } = args;
    const known = await call.records.admit(className);
    const column = findGroupedColumn(args.field, 'field', known);
    const sort = args.sort === 'none' ? undefined : args.sort;
    const stages = [
      { $group: { _id: column.reference } },
      ...(sort ? [{ $sort: { _id: sort === 'asc' ? 1 : -1 } }] : []),
      { $limit: limit + 1 },
    ];
    const field = column.written;
    if (args.dry_run) {
      return dryRun(className, { where, stages, parameters: { field, sort, limit } }, call);
    }
    const { rows } = await call.records.aggregate(className, stages, { where });
    const kept = rows.slice(0, limit);
    const { keys, pointerClass } = showKeys(kept, known, column.wireName);
    return {
      class_name: className,
      field,
      count: keys.length,
      values: keys,
      ...(pointerClass !== null && { pointer_class: pointerClass }),
      ...(sort && { sort }),
      ...(rows.length > limit && cutNote('values', { limit, max: MAX_VALUES })),
      limit,
    };
  }
}
