import { badValue, MongoError, mongoError } from '../errors.js';
import type { Collation } from './collation.js';
import { getField, isDocument, type Document } from './document.js';
import { coerceInteger, numberKind } from './number.js';
import { expandKeys } from './index-keys.js';
import { parseFieldPath } from './path.js';
import { compareValues } from './value-order.js';

/** A compiled sort specification: keys are read once per document, then compared. */
export interface SortOrder {
  listKeys(doc: Document): unknown[];
  compareKeys(a: readonly unknown[], b: readonly unknown[]): number;
}

/**
 * Compiles `{field: 1 | -1, …}`. `{$meta: …}` sorts by the given score, best first; `$natural` is left to the
 * caller. A document stands where the first of its keys under an index on the same fields would stand. Errors:
 * 15974 for a key that is no number, 15975 for a number other than ±1; of a document 2 when two of the fields are
 * arrays, 16746 when a number in a path may be a position or a name.
 */
export function compileSort(
  spec: Document,
  collation?: Collation,
  score?: (doc: Document) => unknown,
): SortOrder {
  const paths: (readonly string[])[] = [];
  const directions: (1 | -1)[] = [];
  const scores: number[] = [];
  for (const name of Object.keys(spec)) {
    const value = spec[name];
    if (name === '$natural') continue;
    if (isDocument(value) && Object.hasOwn(value, '$meta')) {
      if (!score) continue;
      scores.push(directions.length);
      directions.push(-1);
      continue;
    }
    const direction = sortDirection(value);
    paths.push(parseFieldPath(name).parts);
    directions.push(direction);
  }
  const compareKeys: SortOrder['compareKeys'] = (a, b) => {
    for (const [i, direction] of directions.entries()) {
      const result = compareValues(a[i], b[i], collation);
      if (result !== 0) return result * direction;
    }
    return 0;
  };
  return {
    compareKeys,
    listKeys: (doc) => {
      const keys = expandSorted(doc, paths);
      for (const at of scores) for (const key of keys) key.splice(at, 0, score?.(doc));
      return keys.reduce((first, key) => (compareKeys(key, first) < 0 ? key : first));
    },
  };
}

function expandSorted(doc: Document, paths: readonly (readonly string[])[]): unknown[][] {
  try {
    return expandKeys(doc, paths).keys;
  } catch (error) {
    if (!(error instanceof MongoError) || error.code !== 171) throw error;
    throw badValue('cannot sort with keys that are parallel arrays');
  }
}

/**
 * The order of elements of an array as `$push` and `$sortArray` have it: what stands at a path counts as a whole, an
 * array too, and what is no document has nothing there. A name may hold dots or be a position.
 */
export function compileElementSort(
  spec: Document,
  collation?: Collation,
): (a: unknown, b: unknown) => number {
  const keys = Object.keys(spec).map((path) => [path, sortDirection(spec[path])] as const);
  return (a, b) => {
    for (const [path, direction] of keys) {
      const order = compareValues(readElement(a, path), readElement(b, path), collation);
      if (order !== 0) return order * direction;
    }
    return 0;
  };
}

function readElement(element: unknown, path: string): unknown {
  if (!isDocument(element)) return null;
  if (Object.hasOwn(element, path)) return element[path];
  const dot = path.indexOf('.');
  const inner = dot < 0 ? undefined : getField(element, path.slice(0, dot));
  return readElement(Array.isArray(inner) ? Object.fromEntries(inner.entries()) : inner, path.slice(dot + 1));
}

/** Errors: 15974 for what is no number, 15975 for a number other than ±1. */
function sortDirection(value: unknown): 1 | -1 {
  if (numberKind(value) === undefined) {
    throw mongoError(
      15974,
      'Illegal key in $sort specification: the value of a key must be 1, -1 or {$meta: …}',
    );
  }
  const direction = coerceInteger(value);
  if (direction !== 1 && direction !== -1) {
    throw mongoError(15975, '$sort key ordering must be 1 (for ascending) or -1 (for descending)');
  }
  return direction;
}
