import { Injectable } from '@nestjs/common';
import { type Arguments, canonicalFilterChoice, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, BOOLEAN, described, INTEGER, OBJECT, objectOf, STRING } from '../json-schema.js';
import { READ_ONLY } from '../read-only-annotations.js';
import type { ToolCall } from '../tool.js';

@Injectable()
export class CountObjects {
  @Tool({
    name: 'count_objects',
    title: 'Count objects',
    description:
      'How many objects of a class match, without fetching any: sizes a query first. For counts per group use aggregate.',
    category: 'query',
    timeout: 20,
    clientSafe: true,
    annotations: READ_ONLY,
    input: argumentsOf(
      {
        class_name: STRING,
        where: described(OBJECT, 'As in query_class.'),
        apply_canonical_filter: described(BOOLEAN, 'false: no default filter.'),
      },
      ['class_name'],
    ),
    output: objectOf({ class_name: STRING, count: INTEGER, constraints: OBJECT }, ['class_name', 'count']),
  })
  async count(args: Arguments, call: ToolCall) {
    const className = requiredString(args, 'class_name');
    const { where } = args;
    const count = await call.records.count(className, {
      where,
      applyCanonicalFilter: canonicalFilterChoice(args),
    });
    // The caller's own words only: what was added to them is the operator's.
    return { class_name: className, count, constraints: where ?? {} };
  }
}
