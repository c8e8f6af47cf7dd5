import type { Collation } from '../bson/collation.js';
import { compareValues } from '../bson/compare.js';
import { type Document, isDocument } from '../bson/document.js';
import { PAUSE, type Step, STEPS_PER_PAUSE } from '../server/steps.js';
import type { Collection } from '../storage/catalog.js';
import type { StoredDocument } from '../storage/change.js';
import type { CollectionIndex, IndexEntry } from '../storage/collection-index.js';
import type { OrderedSet } from '../storage/ordered-set.js';
import type { IndexCondition, Interval } from './conditions.js';
import {
  contains,
  excludesNull,
  intersectAll,
  isPoint,
  listConditions,
  toIntervals,
  within,
} from './conditions.js';

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

/** What a scan looked at. */
export interface ScanCounts {
  keys: number;
  documents: number;
}

/** A stretch of the index: ranks from inclusive to exclusive. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Most stretches a scan is cut into for the second and later fields. */
const MAX_STRETCHES = 1_000;

/** The part of an index within its bounds, fixed at the moment of its making. */
export class IndexScan {
  /** Keys between the bounds: what the scan costs. */
  readonly cost: number;
  private readonly entries: OrderedSet<IndexEntry>;
  private readonly records: OrderedSet<StoredDocument>;
  private readonly stretches: readonly Stretch[];
  /** Fields whose bounds are checked key by key. */
  private readonly checked: readonly (readonly [number, readonly Interval[]])[];

  constructor(
    collection: Collection,
    private readonly index: CollectionIndex,
    bounds: IndexBounds,
  ) {
    this.entries = index.snapshotEntries();
    this.records = collection.snapshotRecords();
    const { prefixes, next } = this.listFixedPrefixes(bounds);
    const intervals = bounds[next];
    this.stretches = prefixes
      .flatMap((prefix) =>
        intervals
          ? this.inOrder(next, intervals).map((one) => this.stretch(prefix, one))
          : [this.stretch(prefix)],
      )
      .filter(({ from, to }) => from < to);
    this.checked = bounds.flatMap((one, field) => (one && field > next ? [[field, one] as const] : []));
    this.cost = this.stretches.reduce((sum, { from, to }) => sum + to - from, 0);
  }

  *run(direction: 1 | -1, counts: ScanCounts): Generator<Step<StoredDocument>> {
    const seen = this.index.multikey ? new Set<number>() : undefined;
    const reverse = direction < 0;
    let steps = 0;
    for (const { from, to } of reverse ? this.stretches.toReversed() : this.stretches) {
      for (const entry of this.entries.range(from, to, reverse)) {
        counts.keys += 1;
        steps += 1;
        if (steps % STEPS_PER_PAUSE === 0) yield PAUSE;
        if (!this.passes(entry) || seen?.has(entry.recordId)) continue;
        seen?.add(entry.recordId);
        const stored = this.records.find((record) => record.recordId - entry.recordId);
        if (!stored) continue;
        counts.documents += 1;
        yield stored;
      }
    }
  }

  private passes(entry: IndexEntry): boolean {
    return this.checked.every(([field, intervals]) =>
      contains(intervals, entry.values[field], this.index.definition.collation),
    );
  }

  /** Leading fields that are fixed to single values, as all their combinations in index order. */
  private listFixedPrefixes(bounds: IndexBounds): { prefixes: unknown[][]; next: number } {
    let prefixes: unknown[][] = [[]];
    let next = 0;
    for (; next < bounds.length; next += 1) {
      const intervals = bounds[next];
      if (!intervals?.every((one) => isPoint(one, this.index.definition.collation))) break;
      if (next > 0 && prefixes.length * intervals.length > MAX_STRETCHES) break;
      const points = this.inOrder(next, intervals);
      prefixes = prefixes.flatMap((prefix) => points.map((one) => [...prefix, one.low]));
    }
    return { prefixes, next };
  }

  private inOrder(field: number, intervals: readonly Interval[]): readonly Interval[] {
    return this.index.definition.directions[field] === -1 ? intervals.toReversed() : intervals;
  }

  private stretch(prefix: readonly unknown[], interval?: Interval): Stretch {
    if (!interval) return { from: this.rank(prefix, true), to: this.rank(prefix, false) };
    const descending = this.index.definition.directions[prefix.length] === -1;
    const low = this.rank(
      [...prefix, descending ? interval.high : interval.low],
      descending ? interval.highIn : interval.lowIn,
    );
    const high = this.rank(
      [...prefix, descending ? interval.low : interval.high],
      !(descending ? interval.lowIn : interval.highIn),
    );
    return { from: low, to: high };
  }

  /** How many entries lie before the key; keys that begin with it count when `before` is false. */
  private rank(key: readonly unknown[], before: boolean): number {
    return this.entries.rank((entry) => {
      const order = this.index.definition.compareKeys(entry.values, key);
      return order === 0 && !before ? -1 : order;
    });
  }
}
