import { Injectable } from '@nestjs/common';
import {
  type Arguments,
  boolean,
  oneOf,
  optionalString,
  requiredString,
} from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import {
  argumentsOf,
  BOOLEAN,
  described,
  INTEGER,
  listOf,
  OBJECT,
  objectOf,
  STRING,
} from '../json-schema.js';
import { READ_ONLY } from '../read-only-annotations.js';
import type { ToolCall } from '../tool.js';
import { dryRun } from './dry-run.js';
import { shownKeys } from './group-keys.js';
import { cutNote, groupedColumn, groupLimit } from './grouping-arguments.js';
import { DRY_RUN_OUTPUT } from './grouping-schema.js';

const LIMIT = { default: 1000, max: 5000 };
const SORTS = ['asc', 'desc', 'none'] as const;

@Injectable()
export class Distinct {
  @Tool({
    name: 'distinct',
    title: 'Distinct values',
    description:
      'The different values that one field has among the objects of a class. For how often each occurs use group_by. ' +
      "Pointers come as ids, their class in pointer_class. The class's default filter always applies.",
    category: 'aggregate',
    timeout: 30,
    annotations: READ_ONLY,
    input: argumentsOf(
      {
        class_name: STRING,
        field: described(STRING, 'One field name, no path.'),
        where: described(OBJECT, 'As in query_class.'),
        sort: { type: 'string', enum: SORTS },
        limit: described(INTEGER, 'Values at most: default 1000, max 5000.'),
        dry_run: described(BOOLEAN, 'true: check everything, show the pipeline, read nothing.'),
      },
      ['class_name', 'field'],
    ),
    output: objectOf(
      {
        class_name: STRING,
        field: STRING,
        count: INTEGER,
        values: listOf({}),
        pointer_class: STRING,
        sort: STRING,
        truncated: BOOLEAN,
        limit: INTEGER,
        ...DRY_RUN_OUTPUT,
      },
      ['class_name'],
    ),
  })
  async distinct(args: Arguments, call: ToolCall) {
    const className = requiredString(args, 'class_name');
    const known = await call.records.admit(className);
    const column = groupedColumn(args, 'field', known);
    const limit = groupLimit(args, LIMIT);
    const order = optionalString(args, 'sort')?.trim() ? oneOf(args, 'sort', SORTS, 'none') : 'none';
    const sort = order === 'none' ? undefined : order;
    const { where } = args;
    const stages = [
      { $group: { _id: column.reference } },
      ...(sort ? [{ $sort: { _id: sort === 'asc' ? 1 : -1 } }] : []),
      { $limit: limit + 1 },
    ];
    const field = column.written;
    if (boolean(args, 'dry_run', false)) {
      return dryRun(className, { where, stages, parameters: { field, sort, limit } }, call);
    }
    const { rows } = await call.records.aggregate(className, stages, { where });
    const kept = rows.slice(0, limit);
    const { keys, pointerClass } = shownKeys(kept, known, column.wireName);
    return {
      class_name: className,
      field,
      count: keys.length,
      values: keys,
      ...(pointerClass !== null && { pointer_class: pointerClass }),
      ...(sort && { sort }),
      ...(rows.length > limit && cutNote('values', { limit, max: LIMIT.max })),
      limit,
    };
  }
}
