import { Injectable } from '@nestjs/common';
import { Allow, IsOptional } from 'class-validator';
import type { WriteOptions } from '#data';
import { isProposal } from '#policy';
import { Undeclared } from '#schema';
import { refuseArgument } from '../arguments/argument-class.js';
import {
  CheckedByData,
  ClassName,
  RequiredCheckedByData,
  RequiredText,
} from '../arguments/argument.decorators.js';
import { Changes } from '../changes/changes.js';
import { Tool } from '../declaration/tool.decorator.js';
import { BOOLEAN, describeSchema, OBJECT, objectOf, STRING } from '../json-schema.js';
import { simplifyRow } from '../shaping/presented-rows.js';
import type { RowWritingCall } from '../tool.js';

const IDEMPOTENCY_KEY = {
  type: 'string',
  pattern: '^[A-Za-z0-9._:-]{1,128}$',
  description:
    'Names this write: the same call with the same key writes once within a day and is answered again. Give a new one to ' +
    'every write, and the same one to a repetition.',
};

const TEXT_OR_NULL = { type: ['string', 'null'] };

/** Instead of what was written, where the writes of the agent are proposed. */
const PROPOSAL = {
  proposed: BOOLEAN,
  change_set: STRING,
  entry: { type: ['integer', 'null'] },
  before: OBJECT,
  after: OBJECT,
};

const writeOptions = (key: unknown): WriteOptions => (key === undefined ? {} : { idempotencyKey: key });

/** The fields of a write; `data` is an accepted alias. The data layer checks them. */
export function readFields(args: { readonly fields?: unknown; readonly data?: unknown }): unknown {
  const { fields = null, data = null } = args;
  if (fields !== null && data !== null) refuseArgument('give fields or data, not both');
  return fields ?? data ?? undefined;
}

class CreateObjectArguments {
  @ClassName() class_name!: string;
  @RequiredCheckedByData(describeSchema(OBJECT, 'Field values, at most 64 KiB of JSON.')) fields?: unknown;
  @CheckedByData(IDEMPOTENCY_KEY) idempotency_key?: unknown;
  @IsOptional() @Allow() @Undeclared() data?: unknown;
}

@Injectable()
export class CreateObject {
  constructor(private readonly changes: Changes) {}

  @Tool({
    name: 'create_object',
    title: 'Create an object',
    description:
      'Adds one object to a class. Prefer a declared method (call_method) where the class has one for the purpose. ' +
      'Values are Parse JSON in the types that get_schema tells; ids, time stamps and access rights are set by the server.',
    category: 'mutation',
    use: 'create',
    permission: 'write',
    clientSafe: true,
    needs: ['rows'],
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    input: CreateObjectArguments,
    output: objectOf(
      { ...PROPOSAL, class_name: STRING, object_id: TEXT_OR_NULL, created_at: STRING, object: OBJECT },
      ['class_name', 'object_id'],
    ),
  })
  async create(args: CreateObjectArguments, call: RowWritingCall) {
    const className = args.class_name;
    if (isProposal(call.agent, 'create_object'))
      return this.changes.propose(
        { operation: 'create', className, fields: readFields(args) },
        call,
        args.idempotency_key,
      );
    const object = simplifyRow(
      await call.writes.create(className, readFields(args), writeOptions(args.idempotency_key)),
    );
    return {
      class_name: className,
      object_id: object['objectId'],
      created_at: object['createdAt'],
      object,
    };
  }
}

class UpdateObjectArguments {
  @ClassName() class_name!: string;
  @RequiredText() object_id!: string;
  @RequiredCheckedByData(describeSchema(OBJECT, 'New values or __op objects, at most 64 KiB of JSON.'))
  fields?: unknown;
  @CheckedByData(IDEMPOTENCY_KEY) idempotency_key?: unknown;
  @IsOptional() @Allow() @Undeclared() data?: unknown;
}

@Injectable()
export class UpdateObject {
  constructor(private readonly changes: Changes) {}

  @Tool({
    name: 'update_object',
    title: 'Update an object',
    description:
      'Changes the given fields of one object and leaves the others. Prefer a declared method (call_method) where the class ' +
      'has one for the purpose. To count or collect without losing changes of others write {"__op":"Increment","amount":1}, ' +
      '{"__op":"Add","objects":[…]}, AddUnique, Remove or {"__op":"Delete"}.',
    category: 'mutation',
    use: 'update',
    permission: 'write',
    clientSafe: true,
    needs: ['rows'],
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
    input: UpdateObjectArguments,
    output: objectOf(
      { ...PROPOSAL, class_name: STRING, object_id: STRING, updated_at: STRING, object: OBJECT },
      ['class_name', 'object_id'],
    ),
  })
  async update(args: UpdateObjectArguments, call: RowWritingCall) {
    const { class_name: className, object_id: objectId } = args;
    if (isProposal(call.agent, 'update_object'))
      return this.changes.propose(
        { operation: 'update', className, objectId, fields: readFields(args) },
        call,
        args.idempotency_key,
      );
    const object = simplifyRow(
      await call.writes.update(className, objectId, readFields(args), writeOptions(args.idempotency_key)),
    );
    return { class_name: className, object_id: objectId, updated_at: object['updatedAt'], object };
  }
}

class DeleteObjectArguments {
  @ClassName() class_name!: string;
  @RequiredText() object_id!: string;
  @CheckedByData(IDEMPOTENCY_KEY) idempotency_key?: unknown;
}

@Injectable()
export class DeleteObject {
  constructor(private readonly changes: Changes) {}

  @Tool({
    name: 'delete_object',
    title: 'Delete an object',
    description: 'Removes one object for good. Pointers that name it stay and lead nowhere.',
    category: 'mutation',
    use: 'delete',
    permission: 'admin',
    clientSafe: true,
    needs: ['rows'],
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    input: DeleteObjectArguments,
    output: objectOf({ ...PROPOSAL, class_name: STRING, object_id: STRING, deleted: BOOLEAN }, [
      'class_name',
      'object_id',
    ]),
  })
  async delete(args: DeleteObjectArguments, call: RowWritingCall) {
    const { class_name: className, object_id: objectId } = args;
    if (isProposal(call.agent, 'delete_object'))
      return this.changes.propose({ operation: 'delete', className, objectId }, call, args.idempotency_key);
    await call.writes.delete(className, objectId, writeOptions(args.idempotency_key));
    return { class_name: className, object_id: objectId, deleted: true };
  }
}
