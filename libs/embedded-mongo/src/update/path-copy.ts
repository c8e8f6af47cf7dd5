import { badValue, mongoError } from '../errors.js';
import { getField, isDocument, setField, type Document } from '../bson/document.js';
import { arrayIndex } from '../bson/path.js';
import { printValue } from '../bson/shell-text.js';

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
  return mongoError(
    28,
    `Cannot create field '${part}' in element {${parent ?? ''}: ${printValue(container)}}`,
  );
}
