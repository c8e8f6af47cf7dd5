import { badValue } from '../errors.js';
import { firstKey, getField, isDocument, type Document } from '../bson/document.js';
import { parsePath } from '../bson/path.js';
import { toDouble, numberKind } from '../bson/number.js';
import { typeMatcher } from '../bson/type-name.js';
import { onElement, onPath, type Condition, type QueryOperator } from './condition.js';
import type { Predicate, QueryContext } from './context.js';
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
      if (!['$near', '$nearSphere', '$geoNear'].some((near) => Object.hasOwn(siblings, near))) {
        throw badValue(`${name} needs a $near or $nearSphere`);
      }
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
