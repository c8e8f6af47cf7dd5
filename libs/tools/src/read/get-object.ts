import { Injectable } from '@nestjs/common';
import { Refused, refusals } from '#agent';
import { type Arguments, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, described, listOf, mapOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { READ_ONLY } from '../read-only-annotations.js';
import { simplifyRow } from '../shaping/simplify.js';
import type { ToolCall } from '../tool.js';

@Injectable()
export class GetObject {
  @Tool({
    name: 'get_object',
    title: 'Get an object',
    description: 'One object by id, large fields included. For many ids use get_objects.',
    category: 'query',
    timeout: 10,
    clientSafe: true,
    annotations: READ_ONLY,
    input: argumentsOf(
      {
        class_name: STRING,
        object_id: STRING,
        keys: described(listOf(STRING), 'As in query_class.'),
        include: described(listOf(STRING), 'As in query_class.'),
      },
      ['class_name', 'object_id'],
    ),
    output: objectOf(
      {
        class_name: STRING,
        object_id: STRING,
        created_at: STRING,
        updated_at: STRING,
        object: OBJECT,
        truncated_include_fields: mapOf(listOf(STRING)),
      },
      ['class_name', 'object_id', 'object'],
    ),
  })
  async get(args: Arguments, call: ToolCall) {
    const className = requiredString(args, 'class_name');
    const objectId = requiredString(args, 'object_id');
    const { keys, include } = args;
    const { rows, truncatedIncludeFields } = await call.records.get(className, objectId, { keys, include });
    const row = rows[0];
    if (!row) throw new Refused(refusals.objectNotFound(className, objectId));
    const object = simplifyRow(row);
    return {
      class_name: className,
      object_id: objectId,
      ...(typeof object['createdAt'] === 'string' && { created_at: object['createdAt'] }),
      ...(typeof object['updatedAt'] === 'string' && { updated_at: object['updatedAt'] }),
      object,
      ...(truncatedIncludeFields && { truncated_include_fields: truncatedIncludeFields }),
    };
  }
}
