import { Injectable } from '@nestjs/common';
import { type Arguments, boolean, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, BOOLEAN, described, objectOf, STRING } from '../json-schema.js';
import { READ_ONLY } from '../read-only-annotations.js';
import type { ToolCall } from '../tool.js';
import { dryRun } from './dry-run.js';
import { shownKeys } from './group-keys.js';
import {
  accumulator,
  cutNote,
  groupedColumn,
  groupLimit,
  groupSort,
  reduction,
  sortStages,
} from './grouping-arguments.js';
import { DRY_RUN_OUTPUT, GROUPING_INPUT, GROUPING_OUTPUT } from './grouping-schema.js';
import { RESULTS_VIEW } from '../views.js';

const LIMIT = { default: 200, max: 1000 };
/** What a group without a value is called. */
const NO_KEY = 'null';

@Injectable()
export class GroupBy {
  @Tool({
    name: 'group_by',
    title: 'Group by a field',
    description:
      'Counts the objects of a class per value of one field, or sums, averages, or takes min or max of another. For ' +
      "periods of time use group_by_date, for joins and several fields aggregate. The class's default filter always " +
      'applies. Objects without a value are the group "null"; pointers group by id, their class in pointer_class.',
    view: RESULTS_VIEW,
    category: 'aggregate',
    timeout: 45,
    annotations: READ_ONLY,
    input: argumentsOf(
      {
        ...GROUPING_INPUT,
        flatten_arrays: described(BOOLEAN, 'true: each element of a list counts by itself.'),
      },
      ['class_name', 'field'],
    ),
    output: objectOf(
      { ...GROUPING_OUTPUT, pointer_class: STRING, flatten_arrays: BOOLEAN, ...DRY_RUN_OUTPUT },
      ['class_name'],
    ),
  })
  async group(args: Arguments, call: ToolCall) {
    const className = requiredString(args, 'class_name');
    const known = await call.records.admit(className);
    const column = groupedColumn(args, 'field', known);
    const reduced = reduction(args, known);
    const limit = groupLimit(args, LIMIT);
    const sort = groupSort(args);
    const flatten = boolean(args, 'flatten_arrays', false);
    const { where } = args;
    const stages = [
      ...(flatten ? [{ $unwind: column.reference }] : []),
      { $group: { _id: column.reference, value: accumulator(reduced) } },
      ...sortStages(sort),
      { $limit: limit + 1 },
    ];
    const field = column.written;
    const { operation, value } = reduced;
    if (boolean(args, 'dry_run', false)) {
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
    const { keys, pointerClass } = shownKeys(kept, known, column.wireName);
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
      ...(rows.length > limit && cutNote('groups', { limit, max: LIMIT.max })),
      limit,
    };
  }
}
