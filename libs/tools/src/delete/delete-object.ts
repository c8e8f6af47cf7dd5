import { Injectable } from '@nestjs/common';
import { type Arguments, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { BOOLEAN, objectOf, STRING } from '../json-schema.js';
import type { RowWritingCall } from '../tool.js';

@Injectable()
export class DeleteObject {
  @Tool({
    name: 'delete_object',
    title: 'Delete an object',
    description: 'Removes one object for good. Pointers that name it stay and lead nowhere.',
    category: 'mutation',
    permission: 'admin',
    clientSafe: true,
    needs: ['rows'],
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    input: objectOf({ class_name: STRING, object_id: STRING }, ['class_name', 'object_id']),
    output: objectOf({ class_name: STRING, object_id: STRING, deleted: BOOLEAN }, [
      'class_name',
      'object_id',
      'deleted',
    ]),
  })
  async delete(args: Arguments, call: RowWritingCall) {
    const className = requiredString(args, 'class_name');
    const objectId = requiredString(args, 'object_id');
    await call.writes.delete(className, objectId);
    return { class_name: className, object_id: objectId, deleted: true };
  }
}
