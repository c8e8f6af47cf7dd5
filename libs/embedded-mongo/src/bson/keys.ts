import type { Binary, BSONRegExp, Code, ObjectId, Timestamp } from 'bson';
import { Decimal128, Long } from 'bson';
import { badValue, createParseError, mongoError, MongoError } from '../errors.js';
import type { Collation } from './collation.js';
import { binaryBytes, compareValues } from './compare.js';
import { compareDecimals, decimalOfDouble, type ExactDecimal, normalizeDecimal } from './decimal.js';
import { type Document, getField, isDocument } from './document.js';
import { coerceInteger, exactDecimal, numberKind, toDouble } from './number.js';
import { parseFieldPath } from './path.js';
import { typeRank } from './type-name.js';

/**
 * A string that is the same for two values exactly when they compare equal, whatever their numeric types.
 * For hash joins, grouping, sets and unique keys; it says nothing about order.
 */
export function toKey(value: unknown, collation?: Collation): string {
  switch (typeRank(value)) {
    case -1:
      return '<';
    case 0:
      return 'u';
    case 5:
      return '0';
    case 10:
      return `n${numberKey(value)}`;
    case 15:
      return `s${collation ? collation.key(String(value)) : String(value)}`;
    case 20:
      return documentKey(value as Document, collation);
    case 25:
      return arrayKey(value as unknown[], collation);
    case 30: {
      const binary = value as Binary | Uint8Array;
      const type = binary instanceof Uint8Array ? 0 : binary.sub_type;
      return `b${type}:${Buffer.from(binaryBytes(binary)).toString('base64')}`;
    }
    case 35:
      return `o${(value as ObjectId).toHexString()}`;
    case 40:
      return value === true ? 't' : 'f';
    case 45:
      return `d${Number(value)}`;
    case 47:
      return `T${(value as Timestamp).t}:${(value as Timestamp).i}`;
    case 50:
      return `r${frameText((value as BSONRegExp).pattern)}${(value as BSONRegExp).options}`;
    case 60:
    case 65: {
      const code = value as Code;
      return `c${frameText(code.code)}${code.scope ? toKey(code.scope) : ''}`;
    }
    default:
      return '>';
  }
}

/** Several keys as one: each part carries its length, so no two lists collide. */
export const keyOfAll = (values: readonly unknown[], collation?: Collation): string => {
  let key = '';
  for (const value of values) key += frameText(toKey(value, collation));
  return checkKeyLength(key);
};

const longestKey = 64 * 1024 * 1024;

/** Values that share parts many times over are small in memory and endless when written out. */
function checkKeyLength(key: string): string {
  if (key.length > longestKey) throw mongoError(10334, 'a value to compare is larger than any document');
  return key;
}

const frameText = (part: string): string => `${part.length}:${part}`;

function documentKey(doc: Document, collation?: Collation): string {
  let key = '{';
  for (const name of Object.keys(doc)) key += frameText(name) + frameText(toKey(doc[name], collation));
  return checkKeyLength(`${key}}`);
}

function arrayKey(items: unknown[], collation?: Collation): string {
  return `[${keyOfAll(items, collation)}]`;
}

function numberKey(value: unknown): string {
  if (!(value instanceof Long) && !(value instanceof Decimal128)) return String(toDouble(value) + 0);
  const double = toDouble(value);
  const exact = exactDecimal(value);
  if (typeof exact === 'number') return String(exact);
  if (Number.isFinite(double) && compareDecimals(exact, decimalOfDouble(double)) === 0)
    return String(double + 0);
  return exactKey(exact);
}

function exactKey(exact: ExactDecimal): string {
  const { coefficient, exponent } = normalizeDecimal(exact);
  return `${coefficient}E${exponent}`;
}

/** The index keys of one document. */
export interface ExtractedKeys {
  readonly keys: unknown[][];
  /** True when an array was expanded: one document may then have several keys. */
  readonly multikey: boolean;
}

/** What is left of one indexed path: where it stands and the names still to follow; null names = a final value. */
interface Walk {
  readonly value: unknown;
  readonly rest: readonly string[] | null;
}

/**
 * The keys a document has under an index on `paths`. A missing field counts as null and an empty array as undefined;
 * arrays give a key per element. Errors: 171 when two different arrays would have to be combined.
 */
export function extractKeys(document: unknown, paths: readonly (readonly string[])[]): ExtractedKeys {
  const { keys, multikey } = expandKeys(document, paths);
  if (keys.length < 2) return { keys, multikey };
  const distinct = new Map<string, unknown[]>();
  for (const key of keys) distinct.set(keyOfAll(key), key);
  return { keys: [...distinct.values()], multikey };
}

/** The same, where equal keys of several elements are several keys. */
export function expandKeys(document: unknown, paths: readonly (readonly string[])[]): ExtractedKeys {
  const state = { multikey: false };
  const keys = expand(
    paths.map((rest) => ({ value: document, rest })),
    paths,
    state,
  );
  return { keys, multikey: state.multikey };
}

function expand(
  walks: readonly Walk[],
  paths: readonly (readonly string[])[],
  state: { multikey: boolean },
): unknown[][] {
  const reached = walks.map(descend);
  const arrays = new Set(reached.filter((walk) => walk.rest !== null).map((walk) => walk.value));
  const [array, second] = arrays;
  if (array === undefined) return [reached.map((walk) => walk.value)];
  if (second !== undefined) throw parallelArrays(reached, paths);
  state.multikey = true;
  const items = array as unknown[];
  if (items.length === 0) {
    const key = reached.map((walk) =>
      walk.rest === null ? walk.value : walk.rest.length === 0 ? undefined : null,
    );
    return [key];
  }
  return items.flatMap((item) =>
    expand(
      reached.map((walk) => (walk.rest === null ? walk : intoElement(item, walk.rest))),
      paths,
      state,
    ),
  );
}

function intoElement(item: unknown, rest: readonly string[]): Walk {
  if (rest.length === 0) return { value: item, rest: null };
  return isDocument(item) ? { value: item, rest } : { value: null, rest: null };
}

/** Follows a path until its end or an array: the result is final (null) or stands before an array. */
function descend(walk: Walk): Walk {
  let { value, rest } = walk;
  while (rest !== null) {
    if (Array.isArray(value)) {
      const position = elementAt(value, rest[0]);
      if (position === undefined) return { value, rest };
      value = position.value;
      rest = rest.slice(1);
      continue;
    }
    const [name, ...others] = rest;
    if (name === undefined) return { value: value ?? null, rest: null };
    value = isDocument(value) ? getField(value, name) : undefined;
    rest = value === undefined ? null : others;
  }
  return { value: value ?? null, rest: null };
}

function elementAt(array: readonly unknown[], name: string | undefined): { value: unknown } | undefined {
  if (name === undefined || !/^(0|[1-9]\d*)$/.test(name)) return undefined;
  if (array.some((item) => isDocument(item) && Object.hasOwn(item, name)))
    throw mongoError(16746, `Ambiguous field name found in array: '${name}'`);
  const position = Number(name);
  return position < array.length ? { value: array[position] } : undefined;
}

function parallelArrays(walks: readonly Walk[], paths: readonly (readonly string[])[]): Error {
  const names = walks.flatMap((walk, i) => (walk.rest === null ? [] : [`[${paths[i]?.join('.') ?? ''}]`]));
  return mongoError(171, `cannot index parallel arrays ${names.join(' ')}`);
}

/** A compiled sort specification: keys are read once per document, then compared. */
interface SortOrder {
  listKeys(doc: Document): unknown[];
  compareKeys(a: readonly unknown[], b: readonly unknown[]): number;
}

/**
 * Compiles `{field: 1 | -1, …}`. `{$meta: …}` sorts by what is known of a document, the largest first; `$natural` is left to the
 * caller. A document stands where the first of its keys under an index on the same fields would stand. Errors: 9 for a `$meta`
 * in company, 15974 for a key that is no number, 15975 for a number other than ±1; of a document 2 when two of the fields are
 * arrays, 16746 when a number in a path may be a position or a name.
 */
export function compileSort(
  spec: Document,
  collation?: Collation,
  readMeta?: (name: string) => (doc: Document) => unknown,
): SortOrder {
  const paths: (readonly string[])[] = [];
  const directions: (1 | -1)[] = [];
  const metadata: [at: number, read: (doc: Document) => unknown][] = [];
  for (const name of Object.keys(spec)) {
    const value = spec[name];
    if (name === '$natural') continue;
    if (isDocument(value) && Object.hasOwn(value, '$meta')) {
      if (Object.keys(value).length > 1) throw createParseError('a key of a sort is a $meta alone');
      if (!readMeta) continue;
      metadata.push([directions.length, readMeta(String(getField(value, '$meta')))]);
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
      for (const [at, read] of metadata) for (const key of keys) key.splice(at, 0, read(doc));
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
  if (numberKind(value) === undefined) throw mongoError(15974, 'a key of a sort must be 1, -1 or {$meta: …}');
  const direction = coerceInteger(value);
  if (direction !== 1 && direction !== -1)
    throw mongoError(15975, '$sort key ordering must be 1 (for ascending) or -1 (for descending)');
  return direction;
}
