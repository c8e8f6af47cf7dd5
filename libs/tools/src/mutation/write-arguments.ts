import type { WriteOptions } from '#data';
import { type Arguments, refuseArgument } from '../arguments/argument-readers.js';

/** Of the tools that change rows. */
export const IDEMPOTENCY_KEY = {
  type: 'string',
  pattern: '^[A-Za-z0-9._:-]{1,128}$',
  description:
    'Names this write: the same call with the same key writes once within a day and is answered again. Give a new one to ' +
    'every write, and the same one to a repetition.',
};

/** How a write is to be made. Judged by the governed door. */
export function writeOptionsOf(args: Arguments): WriteOptions {
  const given = Object.hasOwn(args, 'idempotency_key') ? args['idempotency_key'] : undefined;
  return given === undefined || given === null ? {} : { idempotencyKey: given };
}

/** The fields of a write; `data` is an accepted alias. Judged by the governed door, never here. */
export function fieldsOf(args: Arguments): unknown {
  const given = ['fields', 'data'].filter((name) => (args[name] ?? undefined) !== undefined);
  if (given.length > 1) refuseArgument('give fields or data, not both');
  return given[0] === undefined ? undefined : args[given[0]];
}
