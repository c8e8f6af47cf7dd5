import { BOOLEAN, described, INTEGER, listOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import type { JsonSchema } from '../tool.js';
import { GROUP_SORTS } from './grouping-arguments.js';

type Properties = Readonly<Record<string, JsonSchema>>;

/** Inputs of both tools that reduce groups to one value. */
export const GROUPING_INPUT: Properties = {
  class_name: STRING,
  field: described(STRING, 'The field to group by; one name, no path.'),
  operation: { type: 'string', enum: ['count', 'sum', 'avg', 'average', 'min', 'max'] },
  value_field: described(STRING, 'What to sum, average, or take the least or greatest of.'),
  where: described(OBJECT, 'As in query_class.'),
  sort: { type: 'string', enum: GROUP_SORTS },
  limit: described(INTEGER, 'Groups at most: default 200, max 1000.'),
  dry_run: described(BOOLEAN, 'true: check everything, show the pipeline, read nothing.'),
};

export const GROUPING_OUTPUT: Properties = {
  class_name: STRING,
  field: STRING,
  operation: STRING,
  value_field: STRING,
  group_count: INTEGER,
  groups: listOf(objectOf({ key: {}, value: {} }, ['key', 'value'])),
  sort: STRING,
  truncated: BOOLEAN,
  limit: INTEGER,
};

export const DRY_RUN_OUTPUT: Properties = {
  dry_run: BOOLEAN,
  pipeline: listOf(OBJECT),
  parameters: OBJECT,
  hint: STRING,
};
