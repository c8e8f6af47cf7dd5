import { compareStrings } from '../bson/compare.js';
import { type Document, firstKey, getField, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { type FieldPath, type LeafArrays, parsePath, someValue } from '../bson/path.js';
import { typeMatcher } from '../bson/type-name.js';
import { badValue } from '../errors.js';
import type { Locator, Predicate, QueryContext } from './context.js';
import { allHold } from './evaluation-order.js';
import { geoWithinTest, nearTest } from './geo.js';
import { isRegex } from './regex.js';
import {
  arrayOfSize,
  bitTest,
  equalTo,
  isReference,
  matchesRegex,
  modulo,
  testOneOf,
  testOrder,
  type ValueTest,
} from './value-tests.js';

/** One operator on a field: a value test, and how it treats arrays. */
interface QueryOperator {
  readonly name: string;
  readonly test: ValueTest;
  readonly leaf: LeafArrays;
  /** True for operators that hold when no value passes the test, such as `$ne`. */
  readonly negated?: boolean;
  /** Set for `$elemMatch`: the position of the matching element. */
  readonly elementIndex?: (value: unknown) => number;
}

/** An operator, or the negation of several. */
type Condition = QueryOperator | { readonly not: readonly Condition[] };

/** A condition as a test of one array element. */
function onElement(condition: Condition): ValueTest {
  if ('not' in condition) {
    const tests = condition.not.map(onElement);
    return (item) => !tests.every((test) => test(item));
  }
  const { test } = condition;
  return condition.negated ? (item) => !test(item) : test;
}

/** A condition as a predicate on the values a path reaches. */
function onPath(condition: Condition, path: FieldPath): Predicate {
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

/** What a field's conditions need: the operation, and a way to compile the filter inside `$elemMatch`. */
interface FieldScope {
  readonly ctx: QueryContext;
  compileFilter(filter: Document): Predicate;
}

/** Compiles `{field: value}` or `{field: {$operator: …}}`. */
export function fieldPredicate(field: string, argument: unknown, scope: FieldScope): Predicate {
  const path = parsePath(field);
  const parts = conditions(argument, scope).map((condition) => onPath(condition, path));
  const only = parts[0];
  if (parts.length === 1 && only) return only;
  return {
    test: (doc) => allHold(parts, (part) => part.test(doc), scope.ctx.order),
    locators: parts.flatMap((part) => part.locators ?? []),
  };
}

/** True for `{$gt: …}`, false for documents that are data, references included. */
export function holdsOperators(argument: unknown): argument is Document {
  if (!isDocument(argument)) return false;
  const key = firstKey(argument);
  return key !== undefined && key.startsWith('$') && !isReference(key);
}

function conditions(argument: unknown, scope: FieldScope): Condition[] {
  if (isRegex(argument)) return [regexCondition(argument)];
  if (!holdsOperators(argument)) return [equality(argument, scope)];
  const found: Condition[] = [];
  for (const name of Object.keys(argument)) found.push(...operator(name, argument, scope));
  return found;
}

const regexCondition = (regex: unknown, options?: unknown): QueryOperator => ({
  name: '$regex',
  test: matchesRegex(regex, options),
  leaf: 'elements',
});

const equality = (value: unknown, scope: FieldScope): QueryOperator => ({
  name: '$eq',
  test: equalTo(value, scope.ctx.collation),
  leaf: 'elements',
});

function operator(name: string, siblings: Document, scope: FieldScope): Condition[] {
  const argument = getField(siblings, name);
  const collation = scope.ctx.collation;
  const elements = (test: ValueTest): Condition[] => [{ name, test, leaf: 'elements' }];
  switch (name) {
    case '$eq':
      return [equality(argument, scope)];
    case '$ne':
      if (isRegex(argument)) throw badValue("Can't have regex as arg to $ne.");
      return [{ ...equality(argument, scope), negated: true }];
    case '$gt':
    case '$gte':
    case '$lt':
    case '$lte':
      return elements(testOrder(name, argument, collation));
    case '$in':
      return elements(testOneOf(name, argument, collation));
    case '$nin':
      return [{ name, test: testOneOf(name, argument, collation), leaf: 'elements', negated: true }];
    case '$exists':
      return [{ name, test: (value) => value !== undefined, leaf: 'whole', negated: !asBoolean(argument) }];
    case '$type':
      return elements(typeMatcher(argument));
    case '$size':
      return [{ name, test: arrayOfSize(argument), leaf: 'whole' }];
    case '$mod':
      return elements(modulo(argument));
    case '$regex':
      return [regexCondition(argument, getField(siblings, '$options'))];
    case '$options':
      if (!Object.hasOwn(siblings, '$regex')) throw badValue('$options needs a $regex');
      return [];
    case '$not':
      return [{ not: compileNegated(argument, scope) }];
    case '$elemMatch':
      return [elementMatch(argument, scope)];
    case '$all':
      return compileAll(argument, scope);
    case '$bitsAllSet':
    case '$bitsAllClear':
    case '$bitsAnySet':
    case '$bitsAnyClear':
      return elements(bitTest(name, argument));
    case '$geoWithin':
    case '$within':
    case '$geoIntersects':
      return elements(geoWithinTest(name, siblings));
    case '$near':
    case '$nearSphere':
    case '$geoNear':
      return elements(nearTest(siblings));
    case '$minDistance':
    case '$maxDistance':
      if (!['$near', '$nearSphere', '$geoNear'].some((near) => Object.hasOwn(siblings, near)))
        throw badValue(`${name} needs a $near or $nearSphere`);
      return [];
    case '$comment':
      return [];
    default:
      throw badValue(`unknown operator: ${name}`);
  }
}

function compileNegated(argument: unknown, scope: FieldScope): Condition[] {
  if (isRegex(argument)) return conditions(argument, scope);
  if (!isDocument(argument)) throw badValue('$not needs a regex or a document');
  if (firstKey(argument) === undefined) throw badValue('$not cannot be empty');
  if (!holdsOperators(argument)) throw badValue(`unknown operator: ${firstKey(argument)}`);
  return conditions(argument, scope);
}

function elementMatch(argument: unknown, scope: FieldScope): QueryOperator {
  if (!isDocument(argument)) throw badValue('$elemMatch needs an Object');
  const test = elementTest(argument, scope);
  const elementIndex = (value: unknown): number => (Array.isArray(value) ? value.findIndex(test) : -1);
  return { name: '$elemMatch', test: (value) => elementIndex(value) >= 0, leaf: 'whole', elementIndex };
}

/** `{$elemMatch: {$gt: 1}}` tests the elements themselves, `{$elemMatch: {a: 1}}` their fields. */
function elementTest(argument: Document, scope: FieldScope): ValueTest {
  const first = firstKey(argument);
  if (first === '$text' || first === '$expr')
    throw badValue(`${first} can only be applied to the top-level document`);
  const logical = first !== undefined && ['$and', '$or', '$nor', '$where'].includes(first);
  if (holdsOperators(argument) && !logical) {
    const tests = conditions(argument, scope).map(onElement);
    return (item) => allHold(tests, (test) => test(item), scope.ctx.order);
  }
  const predicate = scope.compileFilter(argument);
  // An array is seen as a document whose fields are its positions.
  return (item) => {
    if (isDocument(item)) return predicate.test(item);
    return Array.isArray(item) && predicate.test(Object.fromEntries(item.entries()));
  };
}

function compileAll(argument: unknown, scope: FieldScope): Condition[] {
  if (!Array.isArray(argument)) throw badValue('$all needs an array');
  if (argument.length === 0) return [{ name: '$all', test: () => false, leaf: 'whole' }];
  const isElementMatch = (item: unknown): boolean => isDocument(item) && firstKey(item) === '$elemMatch';
  const nested = isElementMatch(argument[0]);
  return argument.map((item: unknown): Condition => {
    if (nested !== isElementMatch(item)) throw badValue('$all/$elemMatch has to be consistent');
    if (nested) return elementMatch((item as Document)['$elemMatch'], scope);
    if (isRegex(item)) return regexCondition(item);
    if (holdsOperators(item)) throw badValue('no $ expressions in $all');
    return equality(item, scope);
  });
}

function asBoolean(value: unknown): boolean {
  return numberKind(value) === undefined
    ? value !== false && value !== null && value !== undefined
    : toDouble(value) !== 0;
}
