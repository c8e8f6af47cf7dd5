import { Injectable } from '@nestjs/common';
import { type Arguments, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, BOOLEAN, objectOf, STRING } from '../json-schema.js';
import type { ClassWritingCall } from '../tool.js';

@Injectable()
export class DeleteClass {
  @Tool({
    name: 'delete_class',
    title: 'Delete a class',
    description: 'Removes a class that has no objects, with its indexes. A class with objects is refused.',
    category: 'mutation',
    permission: 'admin',
    needs: ['classes'],
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    input: argumentsOf({ class_name: STRING }, ['class_name']),
    output: objectOf({ class_name: STRING, deleted: BOOLEAN }, ['class_name', 'deleted']),
  })
  async delete(args: Arguments, call: ClassWritingCall) {
    const className = requiredString(args, 'class_name');
    await call.classes.deleteClass(className);
    return { class_name: className, deleted: true };
  }
}
