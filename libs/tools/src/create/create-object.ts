import { Injectable } from '@nestjs/common';
import { type Arguments, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, described, OBJECT, objectOf, STRING } from '../json-schema.js';
import { fieldsOf, IDEMPOTENCY_KEY, writeOptionsOf } from '../mutation/write-arguments.js';
import { simplifyRow } from '../shaping/simplify.js';
import type { RowWritingCall } from '../tool.js';

@Injectable()
export class CreateObject {
  @Tool({
    name: 'create_object',
    title: 'Create an object',
    description:
      'Adds one object to a class. Prefer a declared method (call_method) where the class has one for the purpose. ' +
      'Values are Parse JSON in the types that get_schema tells; ids, time stamps and access rights are set by the server.',
    category: 'mutation',
    permission: 'write',
    clientSafe: true,
    needs: ['rows'],
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    input: argumentsOf(
      {
        class_name: STRING,
        fields: described(OBJECT, 'Field values, at most 64 KiB of JSON.'),
        idempotency_key: IDEMPOTENCY_KEY,
      },
      ['class_name', 'fields'],
    ),
    output: objectOf({ class_name: STRING, object_id: STRING, created_at: STRING, object: OBJECT }, [
      'class_name',
      'object_id',
      'object',
    ]),
  })
  async create(args: Arguments, call: RowWritingCall) {
    const className = requiredString(args, 'class_name');
    const object = simplifyRow(await call.writes.create(className, fieldsOf(args), writeOptionsOf(args)));
    return {
      class_name: className,
      object_id: object['objectId'],
      created_at: object['createdAt'],
      object,
    };
  }
}
