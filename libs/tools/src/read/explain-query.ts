import { Injectable } from '@nestjs/common';
import { type Arguments, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, described, OBJECT, objectOf, STRING } from '../json-schema.js';
import { READ_ONLY } from '../read-only-annotations.js';
import type { ToolCall } from '../tool.js';

@Injectable()
export class ExplainQuery {
  @Tool({
    name: 'explain_query',
    title: 'Explain a query',
    description:
      'How the database would find the objects of a query, without running it. COLLSCAN means that it reads the whole ' +
      'class, IXSCAN that an index serves it; get_schema lists the indexes. To run the query use query_class.',
    category: 'query',
    timeout: 30,
    annotations: READ_ONLY,
    input: argumentsOf({ class_name: STRING, where: described(OBJECT, 'As in query_class.') }, [
      'class_name',
    ]),
    output: objectOf({ class_name: STRING, constraints: OBJECT, explanation: OBJECT }, [
      'class_name',
      'constraints',
      'explanation',
    ]),
  })
  async explain(args: Arguments, call: ToolCall) {
    const className = requiredString(args, 'class_name');
    const { where } = args;
    const explanation = await call.records.explain(className, { where });
    // The caller's own words only: what was added to them is the operator's.
    return { class_name: className, constraints: where ?? {}, explanation };
  }
}
