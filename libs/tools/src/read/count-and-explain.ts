import { Injectable } from '@nestjs/common';
import { CheckedByData, ClassName, DefaultFilterChoice } from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { INTEGER, OBJECT, objectOf, STRING } from '../json-schema.js';
import { READ_ONLY, type ToolCall } from '../tool.js';

class CountObjectsArguments {
  @ClassName() class_name!: string;
  @CheckedByData(OBJECT) where?: unknown;
  @DefaultFilterChoice() apply_canonical_filter?: boolean;
}

@Injectable()
export class CountObjects {
  @Tool({
    name: 'count_objects',
    title: 'Count objects',
    description: 'How many objects match. For counts per group use group_by or aggregate.',
    category: 'query',
    use: 'count',
    timeout: 20,
    clientSafe: true,
    annotations: READ_ONLY,
    input: CountObjectsArguments,
    output: objectOf({ class_name: STRING, count: INTEGER, constraints: OBJECT }, ['class_name', 'count']),
  })
  async count(args: CountObjectsArguments, call: ToolCall) {
    const { class_name: className, where, apply_canonical_filter: applyCanonicalFilter } = args;
    const count = await call.records.count(className, { where, applyCanonicalFilter });
    // Only the caller's constraint: the added constraints belong to the operator.
    return { class_name: className, count, constraints: where ?? {} };
  }
}

class ExplainQueryArguments {
  @ClassName() class_name!: string;
  @CheckedByData(OBJECT) where?: unknown;
}

@Injectable()
export class ExplainQuery {
  @Tool({
    name: 'explain_query',
    title: 'Explain a query',
    description:
      'How the database would find objects: COLLSCAN reads the whole class, IXSCAN an index of get_schema. To run it use query_class.',
    category: 'query',
    use: 'explain',
    timeout: 30,
    annotations: READ_ONLY,
    input: ExplainQueryArguments,
    output: objectOf({ class_name: STRING, constraints: OBJECT, explanation: OBJECT }, [
      'class_name',
      'constraints',
      'explanation',
    ]),
  })
  async explain({ class_name: className, where }: ExplainQueryArguments, call: ToolCall) {
    const explanation = await call.records.explain(className, { where });
    return { class_name: className, constraints: where ?? {}, explanation };
  }
}
