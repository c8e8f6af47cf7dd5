import { addNumbers } from '../../bson/arithmetic.js';
import { compareValues } from '../../bson/compare.js';
import { type Document, getField, isDocument } from '../../bson/document.js';
import { numberKind, toDouble, wholeNumber } from '../../bson/number.js';
import { refuseOthers } from '../arguments.js';
import { printValue } from '../../bson/text.js';
import { createParseError, mongoError } from '../../errors.js';
import { type DateUnit, isDateUnit, utcZone } from '../date/calendar.js';
import { addToDate } from '../operators/date.js';
import { typeRank } from '../../bson/type-name.js';

/** The documents of one partition in order, with their sort keys. */
export interface Partition {
  readonly docs: readonly Document[];
  readonly keys: readonly (readonly unknown[])[];
  sameRank(a: number, b: number): boolean;
}

type Bound = 'unbounded' | 'current' | number;

/** The documents a window spans around each document, as half-open positions. */
export interface WindowBounds {
  /** True when the window is the whole partition for every document. */
  readonly whole: boolean;
  /** True when it begins at the first document and only grows. */
  readonly growing: boolean;
  span(partition: Partition, at: number): [from: number, to: number];
}

const everything: WindowBounds = {
  whole: true,
  growing: true,
  span: (partition) => [0, partition.docs.length],
};

/** Reads `window: {documents | range: [lower, upper], unit}`. Errors: 9 and 5339900 for malformed bounds. */
export function windowBounds(spec: unknown, sortBy: unknown): WindowBounds {
  if (spec === undefined) return everything;
  if (!isDocument(spec)) throw createParseError("'window' field must be an object");
  refuseOthers(spec, ['documents', 'range', 'unit'], 'window', 9);
  const [documents, range, unit] = ['documents', 'range', 'unit'].map((name) => getField(spec, name));
  if (documents !== undefined && (range ?? unit) !== undefined)
    throw createParseError("Window bounds can specify either 'documents' or 'range' and 'unit', not both.");
  if (documents === undefined && range === undefined) return everything;
  const sortKeys = isDocument(sortBy) ? Object.keys(sortBy) : [];
  const [lower, upper] = readBounds(documents ?? range, documents !== undefined);
  if (lower === 'unbounded' && upper === 'unbounded') return everything;
  if (documents !== undefined) {
    if (sortBy === undefined) throw mongoError(5339901, 'Document-based bounds require a sortBy');
    return documentWindow(lower, upper);
  }
  if (sortKeys.length !== 1 || toDouble((sortBy as Record<string, unknown>)[sortKeys[0] as string]) !== 1)
    throw mongoError(5339902, 'Range-based bounds require a sortBy with exactly one ascending field');
  if (unit !== undefined && !isDateUnit(unit))
    throw createParseError(`unknown time unit value: ${printValue(unit)}`);
  return rangeWindow(lower, upper, unit);
}

function readBounds(value: unknown, whole: boolean): [Bound, Bound] {
  if (!Array.isArray(value) || value.length !== 2)
    throw createParseError('Window bounds must be a 2-element array');
  const bounds = value.map((bound: unknown): Bound => {
    if (bound === 'unbounded' || bound === 'current') return bound;
    if (numberKind(bound) === undefined)
      throw createParseError("Window bounds must be 'unbounded', 'current', or a number");
    if (whole && wholeNumber(bound) === undefined)
      throw createParseError('Numeric document-based bounds must be an integer');
    return toDouble(bound);
  }) as [Bound, Bound];
  const order = bounds.map((bound, i) =>
    bound === 'current' ? 0 : bound === 'unbounded' ? (i === 0 ? -Infinity : Infinity) : bound,
  );
  if ((order[0] as number) > (order[1] as number))
    throw mongoError(5339900, 'Lower bound must not exceed upper bound');
  return bounds;
}

function documentWindow(lower: Bound, upper: Bound): WindowBounds {
  const offset = (bound: Bound, unbounded: number): number =>
    bound === 'unbounded' ? unbounded : bound === 'current' ? 0 : bound;
  const [low, high] = [offset(lower, -Infinity), offset(upper, Infinity)];
  return {
    whole: false,
    growing: lower === 'unbounded',
    span: ({ docs }, at) => [Math.max(0, at + low), Math.max(0, Math.min(docs.length, at + high + 1))],
  };
}

function rangeWindow(lower: Bound, upper: Bound, unit: DateUnit | undefined): WindowBounds {
  const shift = (value: unknown, bound: Bound): unknown => {
    const amount = bound === 'current' ? 0 : (bound as number);
    if (unit) {
      if (!(value instanceof Date))
        throw mongoError(5429513, 'Invalid range: expected the sortBy field to be a Date');
      return addToDate(Number(value), unit, amount, utcZone);
    }
    if (value instanceof Date)
      throw mongoError(5429513, "For windows that involve date ranges, a 'unit' must be provided");
    if (numberKind(value) === undefined)
      throw mongoError(5429414, 'Invalid range: expected the sortBy field to be a number');
    return addNumbers(value, amount);
  };
  return {
    whole: false,
    growing: lower === 'unbounded',
    span: ({ docs, keys }, at) => {
      const value = keys[at]?.[0];
      const rank = typeRank(value);
      const low = lower === 'unbounded' ? undefined : shift(value, lower);
      const high = upper === 'unbounded' ? undefined : shift(value, upper);
      let from = low === undefined ? 0 : at;
      while (
        low !== undefined &&
        from > 0 &&
        typeRank(keys[from - 1]?.[0]) === rank &&
        compareValues(keys[from - 1]?.[0], low) >= 0
      )
        from--;
      while (low !== undefined && from < docs.length && compareValues(keys[from]?.[0], low) < 0) from++;
      let to = high === undefined ? docs.length : at;
      while (high !== undefined && to > 0 && compareValues(keys[to - 1]?.[0], high) > 0) to--;
      while (
        high !== undefined &&
        to < docs.length &&
        typeRank(keys[to]?.[0]) === rank &&
        compareValues(keys[to]?.[0], high) <= 0
      )
        to++;
      return [from, Math.max(from, to)];
    },
  };
}
