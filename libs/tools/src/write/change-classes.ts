import { Injectable } from '@nestjs/common';
import { CheckedByData, ClassName } from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { BOOLEAN, describeSchema, listOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import type { ClassWritingCall } from '../tool.js';

class CreateClassArguments {
  @ClassName() class_name!: string;
  @CheckedByData(
    describeSchema(
      OBJECT,
      'Name to type: String, Number, Boolean, Date, Object, Array, GeoPoint, File, Bytes, Polygon, or ' +
        '{"type":"Pointer" or "Relation","targetClass":"…"}.',
    ),
  )
  fields?: unknown;
}

@Injectable()
export class CreateClass {
  @Tool({
    name: 'create_class',
    title: 'Create a class',
    description:
      'Makes a class. Nobody but the master key has rights on it until an operator grants them. Every class has objectId, ' +
      'createdAt, updatedAt and ACL without asking.',
    category: 'mutation',
    use: 'createClass',
    permission: 'admin',
    needs: ['classes'],
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    input: CreateClassArguments,
    output: objectOf(
      {
        class_name: STRING,
        created: BOOLEAN,
        fields: listOf(objectOf({ name: STRING, type: STRING, target_class: STRING }, ['name', 'type'])),
      },
      ['class_name', 'created', 'fields'],
    ),
  })
  async create(args: CreateClassArguments, call: ClassWritingCall) {
    const className = args.class_name;
    const fields = await call.classes.createClass(className, args.fields);
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

class DeleteClassArguments {
  @ClassName() class_name!: string;
}

@Injectable()
export class DeleteClass {
  @Tool({
    name: 'delete_class',
    title: 'Delete a class',
    description: 'Removes a class that has no objects, with its indexes. A class with objects is refused.',
    category: 'mutation',
    use: 'deleteClass',
    permission: 'admin',
    needs: ['classes'],
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    input: DeleteClassArguments,
    output: objectOf({ class_name: STRING, deleted: BOOLEAN }, ['class_name', 'deleted']),
  })
  async delete(args: DeleteClassArguments, call: ClassWritingCall) {
    const className = args.class_name;
    await call.classes.deleteClass(className);
    return { class_name: className, deleted: true };
  }
}
