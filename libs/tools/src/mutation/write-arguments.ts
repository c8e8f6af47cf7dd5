import { type Arguments, refuseArgument } from '../arguments/argument-readers.js';

/** The fields of a write; `data` is an accepted alias. Judged by the governed door, never here. */
export function fieldsOf(args: Arguments): unknown {
  const given = ['fields', 'data'].filter((name) => (args[name] ?? undefined) !== undefined);
  if (given.length > 1) refuseArgument('give fields or data, not both');
  return given[0] === undefined ? undefined : args[given[0]];
}
