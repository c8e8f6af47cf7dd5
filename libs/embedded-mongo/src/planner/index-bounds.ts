import { compareValues } from '../bson/compare.js';
import type { Collation } from '../bson/collation.js';
import { isDocument, type Document } from '../bson/document.js';
import type { CollectionIndex } from '../storage/collection-index.js';
import { listConditions, excludesNull, toIntervals, type IndexCondition } from './conditions.js';
import { intersectAll, isPoint, within, type Interval } from './intervals.js';

/** For each field of an index the intervals to look in; undefined where the filter says nothing. */
export type IndexBounds = readonly (readonly Interval[] | undefined)[];

/** Whether index and query compare strings alike. */
const sameCollation = (index: CollectionIndex, collation: Collation | undefined): boolean =>
  compareValues(index.definition.collation?.spec, collation?.spec) === 0;

export function findBounds(
  index: CollectionIndex,
  conditions: readonly IndexCondition[],
  collation?: Collation,
): IndexBounds {
  const ordersStrings = sameCollation(index, collation);
  const usedRoots = new Set<string>();
  return index.definition.fields.map((field) => {
    const root = field.split('.', 1)[0] ?? field;
    // Two paths through one array may be met by two different elements, but a key comes from a single one.
    if (index.multikey && usedRoots.has(root)) return undefined;
    const choices = conditions
      .filter((condition) => condition.field === field)
      .flatMap((condition) => {
        const intervals = toIntervals(condition, ordersStrings, index.definition.collation);
        return intervals ? [intervals] : [];
      });
    if (choices.length === 0) return undefined;
    usedRoots.add(root);
    // On an array each condition may be met by another element, so only one of them may narrow the scan.
    if (index.multikey) return choices.toSorted((a, b) => looseness(a, index) - looseness(b, index))[0];
    return choices.reduce((all, next) => intersectAll(all, next, index.definition.collation));
  });
}

const looseness = (intervals: readonly Interval[], index: CollectionIndex): number =>
  intervals.every((one) => isPoint(one, index.definition.collation)) ? intervals.length : 1_000_000;

/** Whether the index holds every document that can match the filter. */
export function holdsAllMatches(
  index: CollectionIndex,
  conditions: readonly IndexCondition[],
  collation?: Collation,
): boolean {
  if (
    index.definition.sparse &&
    !conditions.some((one) => index.definition.fields.includes(one.field) && excludesNull(one))
  )
    return false;
  const partial = index.spec['partialFilterExpression'];
  return (
    partial === undefined ||
    (isDocument(partial) && implies(conditions, partial, sameCollation(index, collation), collation))
  );
}

/**
 * Whether the conditions make the partial filter true: each of its parts follows from one condition. Of strings nothing
 * follows when index and query compare them in two ways.
 */
function implies(
  conditions: readonly IndexCondition[],
  partial: Document,
  ordersStrings: boolean,
  collation: Collation | undefined,
): boolean {
  const simple = Object.entries(partial).every(
    ([key, part]) =>
      !key.startsWith('$') ||
      (key === '$and' && Array.isArray(part) && part.every((one) => isDocument(one) && isFlat(one))),
  );
  if (!simple) return false;
  return listConditions(partial).every((wanted) =>
    conditions.some((given) => {
      if (given.field !== wanted.field) return false;
      if (
        (ordersStrings || !holdsStrings(given.operand)) &&
        given.operator === wanted.operator &&
        compareValues(given.operand, wanted.operand, collation) === 0
      )
        return true;
      if (wanted.operator === '$exists')
        return (wanted.operand === true || wanted.operand === 1) && excludesNull(given);
      const inner = toIntervals(given, ordersStrings, collation);
      const outer = toIntervals(wanted, ordersStrings, collation);
      return (
        inner !== undefined &&
        outer !== undefined &&
        wanted.operator !== '$regex' &&
        within(inner, outer, collation)
      );
    }),
  );
}

const holdsStrings = (value: unknown): boolean =>
  typeof value === 'string' || Array.isArray(value) || isDocument(value);

const isFlat = (filter: Document): boolean => Object.keys(filter).every((key) => !key.startsWith('$'));

/**
 * Whether a scan in index order (1) or against it (-1) gives the sort order; undefined when it does not.
 * Fields fixed to one value may be skipped; an index over arrays gives no usable order.
 */
export function sortDirection(
  index: CollectionIndex,
  bounds: IndexBounds,
  sort: readonly (readonly [string, 1 | -1])[],
  collation?: Collation,
): 1 | -1 | undefined {
  if (index.multikey || !index.definition.ordered || !sameCollation(index, collation)) return undefined;
  const isFixed = (i: number): boolean => {
    const intervals = bounds[i];
    const only = intervals?.length === 1 ? intervals[0] : undefined;
    return only !== undefined && isPoint(only, index.definition.collation);
  };
  let direction: 1 | -1 | undefined;
  let at = 0;
  for (const [field, wanted] of sort) {
    while (at < index.definition.fields.length && index.definition.fields[at] !== field && isFixed(at))
      at += 1;
    if (index.definition.fields[at] !== field) {
      const earlier = index.definition.fields.indexOf(field);
      if (earlier >= 0 && earlier < at && isFixed(earlier)) continue;
      return undefined;
    }
    if (!isFixed(at)) {
      const needed = wanted === index.definition.directions[at] ? 1 : -1;
      if (direction !== undefined && direction !== needed) return undefined;
      direction = needed;
    }
    at += 1;
  }
  return direction ?? 1;
}
