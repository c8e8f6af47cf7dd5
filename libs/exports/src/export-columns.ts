import type { GovernedClass } from '#data';
import { ALWAYS_KEEP, hasInternalSegment, rootOf } from '#policy';
import type { Column, ExportOrder } from '#tools';

/**
 * The columns of a file: those that were asked for, by the names that rows carry; else all that the agent may read of the
 * class at this moment, in clear or in masked form, as far as the order names keys.
 */
export function columnsOf({ columns, keys, include }: ExportOrder, known: GovernedClass): readonly Column[] {
  const { names } = known.policy;
  if (columns.length > 0) return columns.map(({ header, path }) => ({ header, path: names.wirePath(path) }));
  const asked = [keys, include].flatMap((list): unknown[] => (Array.isArray(list) ? list : []));
  const wanted = new Set([
    ...ALWAYS_KEEP,
    ...asked.flatMap((name) => (typeof name === 'string' ? [rootOf(names.wirePath(name))] : [])),
  ]);
  const masked = [...known.masks].filter(([, mask]) => mask !== 'deny').map(([path]) => rootOf(path));
  return [...new Set([...known.fields, ...masked])]
    .filter((field) => !hasInternalSegment(field) && (!Array.isArray(keys) || wanted.has(field)))
    .map((field) => ({ header: field, path: field }));
}
