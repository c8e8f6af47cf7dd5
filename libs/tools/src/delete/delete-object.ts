import { Injectable } from '@nestjs/common';
import { type Arguments, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, BOOLEAN, objectOf, STRING } from '../json-schema.js';
import { IDEMPOTENCY_KEY, writeOptionsOf } from '../mutation/write-arguments.js';
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
    input: argumentsOf({ class_name: STRING, object_id: STRING, idempotency_key: IDEMPOTENCY_KEY }, [
      'class_name',
      'object_id',
    ]),
    output: objectOf({ class_name: STRING, object_id: STRING, deleted: BOOLEAN }, [
      'class_name',
      'object_id',
      'deleted',
    ]),
  })
  async delete(args: Arguments, call: RowWritingCall) {
    const className = requiredString(args, 'class_name');
    const objectId = requiredString(args, 'object_id');
    await call.writes.delete(className, objectId, writeOptionsOf(args));
    return { class_name: className, object_id: objectId, deleted: true };
  }
}
