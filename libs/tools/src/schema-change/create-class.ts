import { Injectable } from '@nestjs/common';
import { type Arguments, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, BOOLEAN, described, listOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import type { ClassWritingCall } from '../tool.js';

@Injectable()
export class CreateClass {
  @Tool({
    name: 'create_class',
    title: 'Create a class',
    description:
      'Makes a class. Nobody but the master key has rights on it until an operator grants them. Every class has objectId, ' +
      'createdAt, updatedAt and ACL without asking.',
    category: 'mutation',
    permission: 'admin',
    needs: ['classes'],
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    input: argumentsOf(
      {
        class_name: STRING,
        fields: described(
          OBJECT,
          'Name to type: String, Number, Boolean, Date, Object, Array, GeoPoint, File, Bytes, Polygon, or ' +
            '{"type":"Pointer" or "Relation","targetClass":"…"}.',
        ),
      },
      ['class_name'],
    ),
    output: objectOf(
      {
        class_name: STRING,
        created: BOOLEAN,
        fields: listOf(objectOf({ name: STRING, type: STRING, target_class: STRING }, ['name', 'type'])),
      },
      ['class_name', 'created', 'fields'],
    ),
  })
  async create(args: Arguments, call: ClassWritingCall) {
    const className = requiredString(args, 'class_name');
    const fields = await call.classes.createClass(className, args['fields']);
    return {
      class_name: className,
      created: true,
      fields: [...fields].map(([name, { type, targetClass }]) => ({
        name,
        type,
        ...(targetClass !== undefined && { target_class: targetClass }),
      })),
    };
  }
}
