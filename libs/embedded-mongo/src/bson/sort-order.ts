import { mongoError } from '../errors.js';
import type { Collation } from './collation.js';
import { isDocument, type Document } from './document.js';
import { coerceInteger, numberKind } from './number.js';
import { parseFieldPath, someValue, type FieldPath } from './path.js';
import { compareValues } from './value-order.js';

/** A compiled sort specification: keys are read once per document, then compared. */
export interface SortOrder {
  listKeys(doc: Document): unknown[];
  compareKeys(a: readonly unknown[], b: readonly unknown[]): number;
}

interface SortField {
  read(doc: Document): unknown;
  readonly direction: 1 | -1;
}

/**
 * Compiles `{field: 1 | -1, …}`. `{$meta: …}` sorts by the given score, best first; `$natural` is left to the
 * caller. Errors: 15974 for a key that is no number, 15975 for a number other than ±1.
 */
export function compileSort(
  spec: Document,
  collation?: Collation,
  score?: (doc: Document) => unknown,
): SortOrder {
  const fields: SortField[] = [];
  for (const name of Object.keys(spec)) {
    const value = spec[name];
    if (name === '$natural') continue;
    if (isDocument(value) && Object.hasOwn(value, '$meta')) {
      if (score) fields.push({ read: score, direction: -1 });
      continue;
    }
    const path = parseFieldPath(name);
    const direction = sortDirection(value);
    fields.push({ read: (doc) => sortKey(doc, path, direction, collation), direction });
  }
  return {
    listKeys: (doc) => fields.map((field) => field.read(doc)),
    compareKeys: (a, b) => {
      for (let i = 0; i < fields.length; i++) {
        const result = compareValues(a[i], b[i], collation);
        if (result !== 0) return result * (fields[i] as SortField).direction;
      }
      return 0;
    },
  };
}

/** A comparator of whole documents that remembers each document's keys while it lives. */
export function sortComparator(spec: Document, collation?: Collation): (a: Document, b: Document) => number {
  const order = compileSort(spec, collation);
  const known = new WeakMap<Document, unknown[]>();
  const keys = (doc: Document): unknown[] => {
    let found = known.get(doc);
    if (!found) known.set(doc, (found = order.listKeys(doc)));
    return found;
  };
  return (a, b) => order.compareKeys(keys(a), keys(b));
}

/** Errors: 15974 for what is no number, 15975 for a number other than ±1. */
export function sortDirection(value: unknown): 1 | -1 {
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

/** An array sorts by its smallest element ascending and its largest descending; an empty one before null. */
function sortKey(
  doc: Document,
  path: FieldPath,
  direction: 1 | -1,
  collation: Collation | undefined,
): unknown {
  let best: unknown;
  let found = false;
  const offer = (value: unknown): void => {
    if (!found || compareValues(value, best, collation) * direction < 0) {
      best = value;
      found = true;
    }
  };
  someValue(doc, path, 0, 'whole', (value) => {
    if (!Array.isArray(value)) offer(value ?? null);
    else if (value.length === 0) offer(undefined);
    else for (const item of value) offer(item ?? null);
    return false;
  });
  return found ? best : null;
}
