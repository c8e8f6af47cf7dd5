import { Injectable } from '@nestjs/common';
import { type Arguments, integer, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, described, INTEGER, listOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { READ_ONLY } from '../read-only-annotations.js';
import { simplifyRow } from '../shaping/simplify.js';
import type { ToolCall } from '../tool.js';

const LIMIT = { default: 5, min: 1, max: 20 };

@Injectable()
export class GetSampleObjects {
  @Tool({
    name: 'get_sample_objects',
    title: 'Sample objects',
    description:
      "The newest objects of a class, to see what its data looks like. The class's default filter always applies; to " +
      'choose objects use query_class.',
    category: 'query',
    timeout: 15,
    clientSafe: true,
    annotations: READ_ONLY,
    input: argumentsOf({ class_name: STRING, limit: described(INTEGER, 'Default 5, max 20.') }, [
      'class_name',
    ]),
    output: objectOf({ class_name: STRING, sample_count: INTEGER, samples: listOf(OBJECT), note: STRING }, [
      'class_name',
      'sample_count',
      'samples',
    ]),
  })
  async sample(args: Arguments, call: ToolCall) {
    const className = requiredString(args, 'class_name');
    const rows = await call.records.samples(className, integer(args, 'limit', LIMIT));
    return {
      class_name: className,
      sample_count: rows.length,
      samples: rows.map(simplifyRow),
      note: `These are the ${rows.length} most recently created objects`,
    };
  }
}
