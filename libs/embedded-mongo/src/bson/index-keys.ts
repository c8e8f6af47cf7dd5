import { getField, isDocument } from './document.js';
import { keyOfAll } from './key-string.js';
import { mongoError } from '../errors.js';

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
  if (array.some((item) => isDocument(item) && Object.hasOwn(item, name))) {
    throw mongoError(
      16746,
      `Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), field: '${name}'`,
    );
  }
  const position = Number(name);
  return position < array.length ? { value: array[position] } : undefined;
}

function parallelArrays(walks: readonly Walk[], paths: readonly (readonly string[])[]): Error {
  const names = walks.flatMap((walk, i) => (walk.rest === null ? [] : [`[${paths[i]?.join('.') ?? ''}]`]));
  return mongoError(171, `cannot index parallel arrays ${names.join(' ')}`);
}
