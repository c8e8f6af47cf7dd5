import { ObjectId, Timestamp } from 'bson';
import type { Collation } from '../bson/collation.js';
import { compareValues } from '../bson/compare.js';
import { numberKind } from '../bson/number.js';

/** A range of values of one field, in ascending BSON order. */
export interface Interval {
  readonly low: unknown;
  readonly high: unknown;
  readonly lowIn: boolean;
  readonly highIn: boolean;
}

export const point = (value: unknown): Interval => ({ low: value, high: value, lowIn: true, highIn: true });

/** A missing field is indexed as null, an empty array as undefined; a filter for null may mean either. */
export const nullish: Interval = { low: undefined, high: null, lowIn: true, highIn: true };

export const isPoint = (interval: Interval, collation?: Collation): boolean =>
  interval.lowIn && interval.highIn && compareValues(interval.low, interval.high, collation) === 0;

/** All values of the type of `value`; undefined for types whose range is not known. */
export function typeRange(value: unknown): Interval | undefined {
  if (typeof value === 'string') return { low: '', high: {}, lowIn: true, highIn: false };
  if (typeof value === 'boolean') return { low: false, high: true, lowIn: true, highIn: true };
  if (value instanceof Date) return createClosedInterval(new Date(-8.64e15), new Date(8.64e15));
  if (value instanceof ObjectId)
    return createClosedInterval(new ObjectId('0'.repeat(24)), new ObjectId('f'.repeat(24)));
  if (value instanceof Timestamp) {
    return createClosedInterval(
      new Timestamp({ t: 0, i: 0 }),
      new Timestamp({ t: 0xffffffff, i: 0xffffffff }),
    );
  }
  return numberKind(value) === undefined ? undefined : createClosedInterval(-Infinity, Infinity);
}

const createClosedInterval = (low: unknown, high: unknown): Interval => ({
  low,
  high,
  lowIn: true,
  highIn: true,
});

/** The common part of two intervals; undefined when there is none. */
export function intersect(a: Interval, b: Interval, collation?: Collation): Interval | undefined {
  const low = compareValues(a.low, b.low, collation);
  const high = compareValues(a.high, b.high, collation);
  const result = {
    low: low >= 0 ? a.low : b.low,
    lowIn: low === 0 ? a.lowIn && b.lowIn : low > 0 ? a.lowIn : b.lowIn,
    high: high <= 0 ? a.high : b.high,
    highIn: high === 0 ? a.highIn && b.highIn : high < 0 ? a.highIn : b.highIn,
  };
  const order = compareValues(result.low, result.high, collation);
  return order < 0 || (order === 0 && result.lowIn && result.highIn) ? result : undefined;
}

export const intersectAll = (
  a: readonly Interval[],
  b: readonly Interval[],
  collation?: Collation,
): Interval[] => a.flatMap((one) => b.flatMap((other) => intersect(one, other, collation) ?? []));

/** Sorts intervals and joins those that overlap. */
export function union(intervals: readonly Interval[], collation?: Collation): Interval[] {
  const sorted = intervals.toSorted(
    (a, b) => compareValues(a.low, b.low, collation) || Number(b.lowIn) - Number(a.lowIn),
  );
  const joined: Interval[] = [];
  for (const next of sorted) {
    const last = joined.at(-1);
    const gap = last && compareValues(last.high, next.low, collation);
    if (last === undefined || gap === undefined || gap < 0 || (gap === 0 && !last.highIn && !next.lowIn)) {
      joined.push(next);
      continue;
    }
    const order = compareValues(last.high, next.high, collation);
    joined[joined.length - 1] = {
      low: last.low,
      lowIn: last.lowIn,
      high: order >= 0 ? last.high : next.high,
      highIn: order === 0 ? last.highIn || next.highIn : order > 0 ? last.highIn : next.highIn,
    };
  }
  return joined;
}

/** Whether a value lies in one of the intervals. */
export function contains(intervals: readonly Interval[], value: unknown, collation?: Collation): boolean {
  return intervals.some(({ low, high, lowIn, highIn }) => {
    const above = compareValues(value, low, collation);
    if (above < 0 || (above === 0 && !lowIn)) return false;
    const below = compareValues(value, high, collation);
    return below < 0 || (below === 0 && highIn);
  });
}

/** Whether every interval of `inner` lies inside one of `outer`. */
export function within(
  inner: readonly Interval[],
  outer: readonly Interval[],
  collation?: Collation,
): boolean {
  return inner.every((one) =>
    outer.some((other) => {
      const common = intersect(one, other, collation);
      return (
        common !== undefined &&
        compareValues(common.low, one.low, collation) === 0 &&
        compareValues(common.high, one.high, collation) === 0 &&
        common.lowIn === one.lowIn &&
        common.highIn === one.highIn
      );
    }),
  );
}
