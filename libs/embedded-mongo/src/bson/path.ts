import { mongoError } from '../errors.js';
import { type Document, getField, isDocument, setField } from './document.js';

/** A dotted path, split once. */
export interface FieldPath {
  readonly text: string;
  readonly parts: readonly string[];
  /** Per part the array position it may stand for, or -1 when it is no whole number. */
  readonly indexes: readonly number[];
}

export const arrayIndex = (part: string): number => (/^(?:0|[1-9]\d{0,8})$/.test(part) ? Number(part) : -1);

export function parsePath(text: string): FieldPath {
  const parts = text.split('.');
  return { text, parts, indexes: parts.map(arrayIndex) };
}

const deepest = 200;

/** A path of an aggregation expression or projection: no empty part, no operator name. */
export function parseFieldPath(text: string): FieldPath {
  if (text === '') throw mongoError(40352, 'FieldPath cannot be constructed with empty string');
  if (text.endsWith('.')) throw mongoError(40353, "FieldPath must not end with a '.'.");
  if (text.includes('\0')) throw mongoError(16411, 'FieldPath field names may not contain a null byte.');
  const path = parsePath(text);
  if (path.parts.length > deepest) throw mongoError(15, `FieldPath is too long: over ${deepest} parts`);
  for (const part of path.parts) {
    if (part === '') throw mongoError(15998, 'FieldPath field names may not be empty strings.');
    if (part.startsWith('$') && !['$ref', '$id', '$db'].includes(part))
      throw mongoError(16410, `FieldPath field names may not start with '$': ${part}`);
  }
  return path;
}

/** Whether a leaf that is an array is offered as a whole only, or element by element and as a whole. */
export type LeafArrays = 'whole' | 'elements';

/**
 * Offers every value a query path reaches, arrays on the way traversed implicitly; a missing field is
 * offered as undefined. Stops at, and reports, the first value for which `visit` answers true.
 */
export function someValue(
  value: unknown,
  path: FieldPath,
  depth: number,
  leaf: LeafArrays,
  visit: (value: unknown) => boolean,
): boolean {
  const { parts } = path;
  let current = value;
  for (let i = depth; i < parts.length; i++) {
    if (Array.isArray(current)) return someElement(current, path, i, leaf, visit);
    if (!isDocument(current)) return visit(undefined);
    current = getField(current, parts[i] as string);
  }
  if (leaf === 'elements' && Array.isArray(current)) {
    for (const item of current) if (visit(item)) return true;
  }
  return visit(current);
}

function someElement(
  items: readonly unknown[],
  path: FieldPath,
  depth: number,
  leaf: LeafArrays,
  visit: (value: unknown) => boolean,
): boolean {
  const index = path.indexes[depth] as number;
  if (index >= 0 && index < items.length && someValue(items[index], path, depth + 1, leaf, visit))
    return true;
  for (const item of items) {
    if (isDocument(item) && someValue(item, path, depth, leaf, visit)) return true;
  }
  return false;
}

/** Every value that `someValue` offers. */
export function listValues(doc: Document, path: FieldPath, leaf: LeafArrays): unknown[] {
  const found: unknown[] = [];
  someValue(doc, path, 0, leaf, (value) => {
    found.push(value);
    return false;
  });
  return found;
}

/** Every leaf a path reaches, array elements one by one, a missing field as undefined. */
export const leafValues = (doc: Document, path: FieldPath): unknown[] =>
  listValues(doc, path, 'elements').filter((value) => !Array.isArray(value));

/** A copy with a value at a dotted path; what stands in the way and is no document gives way to one. */
export function withNested(doc: Document, parts: readonly string[], value: unknown, depth = 0): Document {
  const part = parts[depth] as string;
  const copy = { ...doc };
  if (depth === parts.length - 1) {
    if (value === undefined) delete copy[part];
    else setField(copy, part, value);
    return copy;
  }
  const inner = getField(doc, part);
  setField(copy, part, withNested(isDocument(inner) ? inner : {}, parts, value, depth + 1));
  return copy;
}

/** The value at a dotted path through documents only. */
export function readNested(doc: unknown, parts: readonly string[]): unknown {
  let current = doc;
  for (const part of parts) {
    if (!isDocument(current)) return undefined;
    current = getField(current, part);
  }
  return current;
}
