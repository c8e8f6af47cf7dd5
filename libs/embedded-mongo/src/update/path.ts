import { type Document, getField, isDocument, setField } from '../bson/document.js';
import { arrayIndex } from '../bson/path.js';
import { printValue } from '../bson/text.js';
import { badValue, createParseError, mongoError } from '../errors.js';
import type { Predicate } from '../query/context.js';

/** One step of an update path. */
type UpdateStep =
  | { readonly kind: 'field'; readonly name: string }
  /** `$`: the element the filter matched. */
  | { readonly kind: 'matched' }
  /** `$[]`: every element. */
  | { readonly kind: 'all' }
  /** `$[id]`: the elements an array filter accepts. */
  | {
      readonly kind: 'filtered';
      readonly identifier: string;
      readonly accepts: (element: unknown) => boolean;
    };

export interface UpdatePath {
  readonly text: string;
  readonly steps: readonly UpdateStep[];
  /** True when the concrete paths depend on the document. */
  readonly dynamic: boolean;
}

export type ArrayFilters = ReadonlyMap<string, { accepts(element: unknown): boolean }>;

/** Errors: 56 for an empty part, 2 for an unknown array filter and a second `$`. */
export function parseUpdatePath(text: string, filters: ArrayFilters): UpdatePath {
  if (text === '') throw mongoError(56, 'An empty update path is not valid.');
  const steps = text.split('.').map((part, i): UpdateStep => {
    if (part === '')
      throw mongoError(56, `The update path '${text}' contains an empty field name, which is not allowed.`);
    if (!part.startsWith('$')) return { kind: 'field', name: part };
    if (i === 0 && (part === '$' || part.startsWith('$[')))
      throw badValue(`Cannot have positional (i.e. '$') element in the first position in path '${text}'`);
    if (part === '$') return { kind: 'matched' };
    if (part === '$[]') return { kind: 'all' };
    const identifier = /^\$\[(.+)\]$/.exec(part)?.[1];
    if (identifier === undefined) return { kind: 'field', name: part };
    const filter = filters.get(identifier);
    if (!filter) throw badValue(`No array filter found for identifier '${identifier}' in path '${text}'`);
    return { kind: 'filtered', identifier, accepts: (element) => filter.accepts(element) };
  });
  if (steps.filter((step) => step.kind === 'matched').length > 1)
    throw badValue(`Too many positional (i.e. '$') elements found in path '${text}'`);
  return { text, steps, dynamic: steps.some((step) => step.kind !== 'field') };
}

/** Compiles `arrayFilters`. Errors: 9 for an empty, ambiguous or repeated filter, 2 for a bad identifier. */
export function compileArrayFilters(
  filters: readonly unknown[],
  compileFilter: (filter: Document) => Predicate,
): ArrayFilters {
  const compiled = new Map<string, { accepts(element: unknown): boolean }>();
  for (const filter of filters) {
    if (!isDocument(filter)) throw mongoError(14, 'Each array filter must be an object');
    const identifier = findIdentifier(filter);
    if (identifier === undefined)
      throw createParseError('Cannot use an expression without a top-level field name in arrayFilters');
    if (!/^[a-z][a-zA-Z0-9]*$/.test(identifier))
      throw badValue(`an array filter begins with letters and digits, not '${identifier}'`);
    if (compiled.has(identifier))
      throw createParseError(`Found multiple array filters with the same top-level field name ${identifier}`);
    const predicate = compileFilter(filter);
    compiled.set(identifier, { accepts: (element) => predicate.test({ [identifier]: element }) });
  }
  return compiled;
}

function findIdentifier(filter: Document): string | undefined {
  let found: string | undefined;
  for (const key of Object.keys(filter)) {
    const argument = filter[key];
    const names = key.startsWith('$')
      ? (Array.isArray(argument) ? argument : []).map((part) =>
          isDocument(part) ? findIdentifier(part) : undefined,
        )
      : [key.split('.')[0]];
    for (const name of names) {
      if (name === undefined) continue;
      if (found !== undefined && found !== name)
        throw createParseError(`an array filter is of one field, not of '${found}' and '${name}'`);
      found = name;
    }
  }
  return found;
}

/** The concrete paths an update path stands for in one document; `matched` is the position that `$` stands for. */
export function resolvePath(path: UpdatePath, doc: Document, matched: number | undefined): string[][] {
  if (!path.dynamic) return [path.steps.map((step) => (step as { name: string }).name)];
  const found: string[][] = [];
  const walk = (value: unknown, depth: number, parts: string[]): void => {
    const step = path.steps[depth];
    if (!step) {
      found.push(parts);
      return;
    }
    if (step.kind === 'field') return walk(readChild(value, step.name), depth + 1, [...parts, step.name]);
    if (step.kind === 'matched') {
      if (matched === undefined)
        throw badValue('The positional operator did not find the match needed from the query.');
      return walk(readChild(value, String(matched)), depth + 1, [...parts, String(matched)]);
    }
    const prefix = parts.join('.');
    if (value === undefined)
      throw badValue(`The path '${prefix}' must exist in the document in order to apply array updates.`);
    if (!Array.isArray(value))
      throw badValue(`Cannot apply array updates to non-array element ${parts.at(-1)}: ${printValue(value)}`);
    for (const [index, element] of value.entries()) {
      if (step.kind === 'filtered' && !step.accepts(element)) continue;
      walk(element, depth + 1, [...parts, String(index)]);
    }
  };
  walk(doc, 0, []);
  return found;
}

/** One step down: a field of a document or a position of an array. */
export function readChild(value: unknown, part: string): unknown {
  if (Array.isArray(value)) return value[arrayIndex(part)] as unknown;
  return isDocument(value) ? getField(value, part) : undefined;
}

export const valueAt = (doc: Document, parts: readonly string[]): unknown =>
  parts.reduce<unknown>((value, part) => readChild(value, part), doc);

const maxBackfill = 1_500_000;

/**
 * A copy of the document with another value at a path; only the containers on the way are copied.
 * Missing containers are created. Errors: 28 when the way leads through a scalar.
 */
export function withValue(doc: Document, parts: readonly string[], value: unknown): Document {
  return replaceIn(doc, parts, 0, value) as Document;
}

function replaceIn(container: unknown, parts: readonly string[], depth: number, value: unknown): unknown {
  if (depth === parts.length) return value;
  const part = parts[depth] as string;
  if (container === undefined) {
    const created: Document = {};
    setField(created, part, replaceIn(undefined, parts, depth + 1, value));
    return created;
  }
  if (Array.isArray(container)) {
    const index = arrayIndex(part);
    if (index < 0) throw notViable(part, parts[depth - 1], container);
    if (index - container.length > maxBackfill)
      throw badValue(`cannot backfill more than ${maxBackfill} elements`);
    const copy = container.slice() as unknown[];
    while (copy.length < index) copy.push(null);
    copy[index] = replaceIn(copy[index], parts, depth + 1, value);
    return copy;
  }
  if (!isDocument(container)) throw notViable(part, parts[depth - 1], container);
  const next = replaceIn(getField(container, part), parts, depth + 1, value);
  const copy = { ...container };
  setField(copy, part, next);
  return copy;
}

/** Errors: 28 when a missing path leads through a scalar, or by name through an array. */
export const requireViable = (doc: Document, parts: readonly string[]): void =>
  void withValue(doc, parts, null);

/** A copy without the value at a path: fields vanish, array elements become null. The same object if absent. */
export function withoutValue(doc: Document, parts: readonly string[]): Document {
  return removeIn(doc, parts, 0) as Document;
}

function removeIn(container: unknown, parts: readonly string[], depth: number): unknown {
  const part = parts[depth] as string;
  const last = depth === parts.length - 1;
  if (Array.isArray(container)) {
    const index = arrayIndex(part);
    if (index < 0 || index >= container.length) return container;
    const next: unknown = last ? null : removeIn(container[index], parts, depth + 1);
    if (next === container[index]) return container;
    const copy = container.slice() as unknown[];
    copy[index] = next;
    return copy;
  }
  if (!isDocument(container) || !Object.hasOwn(container, part)) return container;
  if (last) {
    const { [part]: _removed, ...rest } = container;
    return rest;
  }
  const next = removeIn(container[part], parts, depth + 1);
  if (next === container[part]) return container;
  const copy = { ...container };
  setField(copy, part, next);
  return copy;
}

function notViable(part: string, parent: string | undefined, container: unknown): Error {
  return mongoError(28, `Cannot create field '${part}' in {${parent ?? ''}: ${printValue(container)}}`);
}

/** Refuses two modifiers that touch the same place: each path may be written once, and nothing below it. */
export class TouchedPaths {
  private readonly root: PathNode = { ends: false, children: new Map() };

  /** Errors: 40 when the path equals, contains or lies within one added before. */
  add(parts: readonly string[]): void {
    let node = this.root;
    for (const [i, part] of parts.entries()) {
      let next = node.children.get(part);
      if (!next) node.children.set(part, (next = { ends: false, children: new Map() }));
      node = next;
      if (node.ends) throw conflict(parts, i + 1);
    }
    if (node.children.size > 0) throw conflict(parts, parts.length);
    node.ends = true;
  }
}

interface PathNode {
  ends: boolean;
  readonly children: Map<string, PathNode>;
}

const conflict = (parts: readonly string[], length: number): Error =>
  mongoError(40, `Updating the path would create a conflict at '${parts.slice(0, length).join('.')}'`);
