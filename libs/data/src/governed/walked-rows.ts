import { Refused, refusals } from '#agent';
import { allOf, type ClassAccess, parseOrder, type SortKey, type Where } from '#policy';
import type { FindOptions } from '../governed-records.js';

const BY_ID: readonly SortKey[] = [{ field: 'objectId', descending: false }];

/**
 * What a find reads, and in which order. A class that is walked in parts goes by id: that order is total and has an index,
 * and rows that are created or removed meanwhile move no other row from one part to the next.
 */
export function walked(
  where: Where,
  { after, order, skip }: Pick<FindOptions, 'after' | 'order' | 'skip'>,
  access: ClassAccess,
): { readonly where: Where; readonly order: readonly SortKey[] } {
  if (after === undefined) return { where, order: parseOrder(order, access) };
  if (order !== undefined || skip !== undefined)
    throw new Refused(refusals.invalidArgument('rows behind an id come in the order of ids'));
  return { where: after === '' ? where : allOf(where, { objectId: { $gt: after } }), order: BY_ID };
}
