import { getField, isDocument, type Document } from '../bson/document.js';
import { someValue, type FieldPath, type LeafArrays } from '../bson/path.js';
import { compareStrings } from '../bson/compare.js';
import type { Locator, Predicate } from './context.js';
import type { ValueTest } from './value-tests.js';

/** One operator on a field: a value test, and how it treats arrays. */
export interface QueryOperator {
  readonly name: string;
  readonly test: ValueTest;
  readonly leaf: LeafArrays;
  /** True for operators that hold when no value passes the test, such as `$ne`. */
  readonly negated?: boolean;
  /** Set for `$elemMatch`: the position of the matching element. */
  readonly elementIndex?: (value: unknown) => number;
}

/** An operator, or the negation of several. */
export type Condition = QueryOperator | { readonly not: readonly Condition[] };

/** A condition as a test of one array element. */
export function onElement(condition: Condition): ValueTest {
  if ('not' in condition) {
    const tests = condition.not.map(onElement);
    return (item) => !tests.every((test) => test(item));
  }
  const { test } = condition;
  return condition.negated ? (item) => !test(item) : test;
}

/** A condition as a predicate on the values a path reaches. */
export function onPath(condition: Condition, path: FieldPath): Predicate {
  if ('not' in condition) {
    const parts = condition.not.map((part) => onPath(part, path));
    return { test: (doc) => !parts.every((part) => part.test(doc)) };
  }
  const { test, leaf } = condition;
  if (condition.negated) return { test: (doc) => !someValue(doc, path, 0, leaf, test) };
  const { name } = condition;
  const locate = (doc: Document): number | undefined => locateMatch(doc, path, condition);
  const locators = [{ name, path: path.text, locate }];
  const [field] = path.parts;
  if (path.parts.length === 1 && field !== undefined)
    return { test: (doc) => testField(doc, field, leaf, test), locators };
  return { test: (doc) => someValue(doc, path, 0, leaf, test), locators };
}

function testField(doc: Document, field: string, leaf: LeafArrays, test: ValueTest): boolean {
  const value = getField(doc, field);
  if (leaf === 'elements' && Array.isArray(value) && value.some(test)) return true;
  return test(value);
}

/** The element of the outermost implicitly traversed array through which the condition held. */
function locateMatch(doc: Document, path: FieldPath, condition: QueryOperator): number | undefined {
  const { test, leaf } = condition;
  let current: unknown = doc;
  for (const [depth, part] of path.parts.entries()) {
    if (Array.isArray(current)) {
      const explicit = current[path.indexes[depth] as number] as unknown;
      if (explicit !== undefined && someValue(explicit, path, depth + 1, leaf, test)) {
        current = explicit;
        continue;
      }
      return position(
        current.findIndex((item) => isDocument(item) && someValue(item, path, depth, leaf, test)),
      );
    }
    if (!isDocument(current)) return undefined;
    current = getField(current, part);
  }
  if (!Array.isArray(current)) return undefined;
  return position(condition.elementIndex?.(current) ?? current.findIndex((item) => test(item)));
}

const position = (index: number): number | undefined => (index < 0 ? undefined : index);

const sorted = '$or $elemMatch $size $eq $lte $lt $gt $gte $regex $mod $exists $in'.split(' ');

/** The position that the last of the conditions notes, in the order in which MongoDB sorts them. */
export function findPosition(locators: readonly Locator[]): (doc: Document) => number | undefined {
  const rank = ({ name }: Locator): number => sorted.indexOf(name) >>> 0;
  const last = locators.toSorted((a, b) => rank(a) - rank(b) || compareStrings(a.path, b.path)).reverse();
  return (doc) => {
    for (const { locate } of last) {
      const found = locate(doc);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}
