import { BSONRegExp, ObjectId, Timestamp } from 'bson';
import type { Collation } from '../bson/collation.js';
import { compareValues } from '../bson/compare.js';
import { type Document, firstKey, isDocument } from '../bson/document.js';
import { numberKind } from '../bson/number.js';

/** A range of values of one field, in ascending BSON order. */
export interface Interval {
  readonly low: unknown;
  readonly high: unknown;
  readonly lowIn: boolean;
  readonly highIn: boolean;
}

const point = (value: unknown): Interval => ({ low: value, high: value, lowIn: true, highIn: true });

/** A missing field is indexed as null, an empty array as undefined; a filter for null may mean either. */
const nullish: Interval = { low: undefined, high: null, lowIn: true, highIn: true };

export const isPoint = (interval: Interval, collation?: Collation): boolean =>
  interval.lowIn && interval.highIn && compareValues(interval.low, interval.high, collation) === 0;

/** All values of the type of `value`; undefined for types whose range is not known. */
function typeRange(value: unknown): Interval | undefined {
  if (typeof value === 'string') return { low: '', high: {}, lowIn: true, highIn: false };
  if (typeof value === 'boolean') return { low: false, high: true, lowIn: true, highIn: true };
  if (value instanceof Date) return createClosedInterval(new Date(-8.64e15), new Date(8.64e15));
  if (value instanceof ObjectId)
    return createClosedInterval(new ObjectId('0'.repeat(24)), new ObjectId('f'.repeat(24)));
  if (value instanceof Timestamp)
    return createClosedInterval(
      new Timestamp({ t: 0, i: 0 }),
      new Timestamp({ t: 0xffffffff, i: 0xffffffff }),
    );
  return numberKind(value) === undefined ? undefined : createClosedInterval(-Infinity, Infinity);
}

const createClosedInterval = (low: unknown, high: unknown): Interval => ({
  low,
  high,
  lowIn: true,
  highIn: true,
});

/** The common part of two intervals; undefined when there is none. */
function intersect(a: Interval, b: Interval, collation?: Collation): Interval | undefined {
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
function union(intervals: readonly Interval[], collation?: Collation): Interval[] {
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

/** One operator applied to one field; every document that matches the filter meets it. */
export interface IndexCondition {
  readonly field: string;
  readonly operator: string;
  readonly operand: unknown;
}

/** The conditions that all have to hold: the filter's fields and those of its `$and`s. */
export function listConditions(filter: Document): IndexCondition[] {
  return Object.entries(filter).flatMap(([key, operand]): IndexCondition[] => {
    if (key === '$and' && Array.isArray(operand)) return operand.filter(isDocument).flatMap(listConditions);
    if (key.startsWith('$')) return [];
    if (!isDocument(operand) || !firstKey(operand)?.startsWith('$'))
      return [{ field: key, operator: operand instanceof BSONRegExp ? '$regex' : '$eq', operand }];
    return Object.entries(operand).flatMap(([operator, value]): IndexCondition[] => {
      if (operator === '$options') return [];
      if (operator === '$regex' && !(value instanceof BSONRegExp)) {
        const options = operand['$options'] ?? '';
        if (typeof value !== 'string' || typeof options !== 'string') return [];
        return [{ field: key, operator, operand: new BSONRegExp(value, options) }];
      }
      // Options beside a ready-made expression replace its own.
      if (operator === '$regex' && operand['$options'] !== undefined) return [];
      return [{ field: key, operator, operand: value }];
    });
  });
}

/**
 * The intervals outside of which no indexed value can meet the condition; undefined when an index is of no use.
 * `ordersStrings` is false when the index compares strings in another way than the query.
 */
export function toIntervals(
  condition: IndexCondition,
  ordersStrings: boolean,
  collation?: Collation,
): Interval[] | undefined {
  const { operator, operand } = condition;
  switch (operator) {
    case '$eq':
      return equalTo(operand, ordersStrings);
    case '$in': {
      if (!Array.isArray(operand)) return undefined;
      const all = operand.map((item) =>
        item instanceof BSONRegExp
          ? toRegexIntervals(item, ordersStrings, collation)
          : equalTo(item, ordersStrings),
      );
      return all.some((one) => one === undefined)
        ? undefined
        : union(
            all.flatMap((one) => one ?? []),
            collation,
          );
    }
    case '$gt':
    case '$gte': {
      const limit = { low: operand, lowIn: operator === '$gte' };
      return range(operand, ordersStrings, collation, (type) => ({ ...type, ...limit }));
    }
    case '$lt':
    case '$lte': {
      const limit = { high: operand, highIn: operator === '$lte' };
      return range(operand, ordersStrings, collation, (type) => ({ ...type, ...limit }));
    }
    case '$regex':
      return operand instanceof BSONRegExp ? toRegexIntervals(operand, ordersStrings, collation) : undefined;
    default:
      return undefined;
  }
}

/** Whether the condition is never met by a missing or null field. */
export function excludesNull(condition: IndexCondition): boolean {
  if (condition.operator === '$exists') return condition.operand === true || condition.operand === 1;
  const intervals = toIntervals(condition, true);
  return intervals !== undefined && intervals.every((interval) => intersect(interval, nullish) === undefined);
}

function equalTo(value: unknown, ordersStrings: boolean): Interval[] | undefined {
  if (value === null || value === undefined) return [nullish];
  if (Array.isArray(value)) return undefined;
  if (!ordersStrings && (typeof value === 'string' || isDocument(value))) return undefined;
  return [point(value)];
}

function range(
  value: unknown,
  ordersStrings: boolean,
  collation: Collation | undefined,
  limit: (type: Interval) => Interval,
): Interval[] | undefined {
  if (Number.isNaN(Number(value)) && typeof value === 'number') return undefined;
  if (typeof value === 'string' && !ordersStrings) return undefined;
  const type = typeRange(value);
  const narrowed = type && intersect(type, limit(type), collation);
  return type && (narrowed ? [narrowed] : []);
}

/** Strings a regular expression can match: those with its literal prefix, or all. */
function toRegexIntervals(
  regex: BSONRegExp,
  ordersStrings: boolean,
  collation?: Collation,
): Interval[] | undefined {
  if (!ordersStrings || collation !== undefined) return undefined;
  const prefix = literalPrefix(regex);
  const after = prefix && nextString(prefix);
  const strings: Interval = prefix
    ? { low: prefix, lowIn: true, high: after ?? {}, highIn: false }
    : { low: '', lowIn: true, high: {}, highIn: false };
  // A stored regular expression that is the same also matches.
  return [strings, point(regex)];
}

function literalPrefix({ pattern, options }: BSONRegExp): string | undefined {
  if (options !== '' && options !== 's') return undefined;
  const quoted = /^(?:\^|\\A)\\Q([\s\S]*?)(?:\\E([\s\S]*)|$)/.exec(pattern);
  if (quoted) return quoted[2]?.includes('|') || /^[*?{]/.test(quoted[2] ?? '') ? undefined : quoted[1];
  if (pattern.includes('|')) return undefined;
  const plain = /^(?:\^|\\A)([^\\^$.*+?()[\]{}|#\s]*)([\s\S]?)/.exec(pattern);
  if (!plain?.[1]) return undefined;
  // A quantifier belongs to the character before it, which is then optional.
  const letters = Array.from(plain[1]);
  if (/[*?{]/.test(plain[2] ?? '')) letters.pop();
  return letters.join('') || undefined;
}

/** The smallest string above every string with this prefix; undefined when there is none. */
function nextString(prefix: string): string | undefined {
  const points = Array.from(prefix, (letter) => letter.codePointAt(0) ?? 0);
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    if (last === 0x10ffff) continue;
    // Surrogates are no characters of their own.
    const next = last === 0xd7ff ? 0xe000 : last + 1;
    return String.fromCodePoint(...points, next);
  }
  return undefined;
}
