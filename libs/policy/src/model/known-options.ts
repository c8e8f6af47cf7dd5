import { cutText } from '#core';
import { suggestNames } from './field-names.js';

/** What other libraries call an option. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  where: ['filter', 'filters', 'query', 'condition', 'conditions', 'match', 'constraint', 'constraints'],
  order: ['sort', 'sortBy', 'orderBy', 'order_by'],
  keys: ['select', 'fields', 'projection', 'columns', 'attributes'],
  include: ['populate', 'includes', 'relations', 'expand'],
  skip: ['offset', 'start'],
  limit: ['take', 'first', 'top', 'max', 'perPage'],
  input: ['inputSchema', 'parameters', 'schema', 'args', 'arguments'],
  output: ['outputSchema', 'result', 'returns'],
  permission: ['tier', 'level', 'role'],
  arguments: ['args', 'parameters', 'input'],
  ids: ['object_ids', 'objectIds', 'object_id', 'objectId', 'id'],
  field: ['date_field', 'group_field', 'group_by', 'groupBy', 'by', 'column', 'key'],
  operation: ['op', 'aggregation', 'function', 'metric', 'accumulator'],
  interval: ['unit', 'period', 'granularity', 'bucket'],
};

/** The names of the options of a function. The compiler knows when one is missing. */
export type OptionNames<Options> = Readonly<Record<keyof Options, true>>;

/** The one of the names that another library calls as it was written. */
export const findOtherName = (written: string, names: readonly string[]): string | undefined =>
  names.find((name) => OTHER_NAMES[name]?.includes(written));

/**
 * Why `given` are not the options of a function, or null. An option with a wrong name would have no effect: a filter among
 * them would find every row.
 */
export function optionsError(given: unknown, known: Readonly<Record<string, true>>): string | null {
  if (given === undefined) return null;
  const names = Object.keys(known);
  if (given === null || typeof given !== 'object' || Array.isArray(given))
    return `expected an object with options: ${names.join(', ')}`;
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return null;
  const meant = findOtherName(unknown, names) ?? suggestNames(unknown, names)[0];
  return `unknown option '${cutText(unknown, 64)}'${meant === undefined ? '' : `: write '${meant}'`}; there are: ${names.join(', ')}`;
}

/** @param what the function, for the message. @throws TypeError for an option that it does not have, also from untyped code */
export function assertOptions(what: string, given: unknown, known: Readonly<Record<string, true>>): void {
  const error = optionsError(given, known);
  if (error !== null) throw new TypeError(`${what}: ${error}`);
}
