import { Injectable } from '@nestjs/common';
import { type Arguments, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, described, OBJECT, objectOf, STRING } from '../json-schema.js';
import { fieldsOf, IDEMPOTENCY_KEY, writeOptionsOf } from '../mutation/write-arguments.js';
import { simplifyRow } from '../shaping/simplify.js';
import type { RowWritingCall } from '../tool.js';

@Injectable()
export class UpdateObject {
  @Tool({
    name: 'update_object',
    title: 'Update an object',
    description:
      'Changes the given fields of one object and leaves the others. Prefer a declared method (call_method) where the class ' +
      'has one for the purpose. To count or collect without losing changes of others write {"__op":"Increment","amount":1}, ' +
      '{"__op":"Add","objects":[…]}, AddUnique, Remove or {"__op":"Delete"}.',
    category: 'mutation',
    permission: 'write',
    clientSafe: true,
    needs: ['rows'],
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
    input: argumentsOf(
      {
        class_name: STRING,
        object_id: STRING,
        fields: described(OBJECT, 'New values or __op objects, at most 64 KiB of JSON.'),
        idempotency_key: IDEMPOTENCY_KEY,
      },
      ['class_name', 'object_id', 'fields'],
    ),
    output: objectOf({ class_name: STRING, object_id: STRING, updated_at: STRING, object: OBJECT }, [
      'class_name',
      'object_id',
      'object',
    ]),
  })
  async update(args: Arguments, call: RowWritingCall) {
    const className = requiredString(args, 'class_name');
    const objectId = requiredString(args, 'object_id');
    const object = simplifyRow(
      await call.writes.update(className, objectId, fieldsOf(args), writeOptionsOf(args)),
    );
    return { class_name: className, object_id: objectId, updated_at: object['updatedAt'], object };
  }
}
