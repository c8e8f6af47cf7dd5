import type { Collation } from '../bson/collation.js';
import { compareValues } from '../bson/compare.js';
import { type Document, firstKey, isDocument } from '../bson/document.js';
import { toKey, compileElementSort } from '../bson/keys.js';
import { numberKind, toDouble, wholeNumber } from '../bson/number.js';
import { printValue } from '../bson/text.js';
import { typeName } from '../bson/type-name.js';
import { badValue, createParseError, typeMismatch } from '../errors.js';
import { isRegex } from '../query/regex.js';
import { type ModifierCompiler, type ModifierContext, unchanged } from './field-modifiers.js';
import { requireViable } from './path.js';

/** `$push` and `$addToSet` take one value, or several as `{$each: […]}`. */
function readEach(
  argument: unknown,
  name: string,
  allowed: readonly string[],
): { items: unknown[]; options: Document } {
  if (!isDocument(argument) || firstKey(argument) === undefined || !Object.hasOwn(argument, '$each'))
    return { items: [argument], options: {} };
  const items = argument['$each'];
  if (!Array.isArray(items)) {
    const text = `The argument to $each in ${name} must be an array but it was of type ${typeName(items)}`;
    throw name === '$push' ? badValue(text) : typeMismatch(text);
  }
  for (const key of Object.keys(argument)) {
    if (key !== '$each' && !allowed.includes(key))
      throw name === '$push'
        ? badValue(`Unrecognized clause in $push: ${key}`)
        : badValue(`Found unexpected fields after $each in $addToSet: ${printValue(argument)}`);
  }
  return { items, options: argument };
}

function wholeOption(options: Document, name: string): number | undefined {
  if (!Object.hasOwn(options, name)) return undefined;
  const value = options[name];
  if (numberKind(value) === undefined)
    throw badValue(`The value for ${name} must be an integer value but was given type: ${typeName(value)}`);
  const whole = wholeNumber(value);
  if (whole === undefined)
    throw badValue(`The value for ${name} must be an integer, not ${printValue(value)}`);
  return whole;
}

const push: ModifierCompiler = (argument, _field, context) => {
  const { items, options } = readEach(argument, '$push', ['$position', '$slice', '$sort']);
  const position = wholeOption(options, '$position');
  const slice = wholeOption(options, '$slice');
  const order = Object.hasOwn(options, '$sort') ? pushOrder(options['$sort'], context) : undefined;
  return (current, target) => {
    if (current !== undefined && !Array.isArray(current))
      throw badValue(`The field '${target.path}' must be an array but is of type ${typeName(current)}`);
    let result: unknown[] = [...((current as unknown[] | undefined) ?? [])];
    if (position === undefined) result.push(...items);
    else result.splice(position < 0 ? Math.max(0, result.length + position) : position, 0, ...items);
    if (order) result.sort(order);
    if (slice !== undefined) {
      result = slice === 0 ? [] : slice > 0 ? result.slice(0, slice) : result.slice(slice);
    }
    return result;
  };
};

function pushOrder(sort: unknown, { ctx }: ModifierContext): (a: unknown, b: unknown) => number {
  if (isDocument(sort)) {
    if (firstKey(sort) === undefined) throw badValue('The sort parameter must be non-empty.');
    for (const key of Object.keys(sort)) {
      if (key === '' || key.split('.').includes(''))
        throw badValue('The $sort field is a dotted field but has an empty part');
      if (!isOne(sort[key])) throw badValue('The $sort element value must be either 1 or -1');
    }
    return compileElementSort(sort, ctx.collation);
  }
  if (!isOne(sort)) throw badValue('The $sort is invalid: use 1, -1 or an object of fields with them');
  const direction = toDouble(sort);
  return (a, b) => compareValues(a, b, ctx.collation) * direction;
}

const isOne = (value: unknown): boolean => numberKind(value) !== undefined && Math.abs(toDouble(value)) === 1;

const addToSet: ModifierCompiler = (argument, _field, { ctx }) => {
  const { items } = readEach(argument, '$addToSet', []);
  return (current, target) => {
    if (current !== undefined && !Array.isArray(current))
      throw badValue(`Cannot apply $addToSet to '${target.path}' of type ${typeName(current)}`);
    const result: unknown[] = [...((current as unknown[] | undefined) ?? [])];
    const known = new Set(result.map((item) => toKey(item, ctx.collation)));
    for (const item of items) {
      const key = toKey(item, ctx.collation);
      if (known.has(key)) continue;
      known.add(key);
      result.push(item);
    }
    return current !== undefined && result.length === (current as unknown[]).length ? unchanged : result;
  };
};

const pop: ModifierCompiler = (argument, field) => {
  if (numberKind(argument) === undefined)
    throw createParseError(`Expected a number in: ${field}: ${printValue(argument)}`);
  const end = toDouble(argument);
  if (end !== 1 && end !== -1) throw createParseError(`$pop expects 1 or -1, found: ${end}`);
  return (current, target) => {
    if (current === undefined) {
      requireViable(target.doc, target.path.split('.'));
      return unchanged;
    }
    if (!Array.isArray(current))
      throw typeMismatch(`Path '${target.path}' is no array but of type '${typeName(current)}'`);
    if (current.length === 0) return unchanged;
    return end === 1 ? current.slice(0, -1) : current.slice(1);
  };
};

const pull: ModifierCompiler = (argument, _field, { ctx, compileFilter: filterOf }) => {
  const matches = elementMatcher(argument, filterOf, ctx.collation);
  return (current) => {
    ctx.tick();
    return pullFrom(current, matches);
  };
};

function pullFrom(current: unknown, isUnwanted: (item: unknown) => boolean): unknown {
  if (current === undefined) return unchanged;
  if (!Array.isArray(current)) throw badValue('Cannot apply $pull to a non-array value');
  const kept = current.filter((item) => !isUnwanted(item));
  return kept.length === current.length ? unchanged : kept;
}
/** `{$pull: {a: {b: 1}}}` is a filter on elements that are documents; operators and values test the element. */
function elementMatcher(
  argument: unknown,
  filterOf: ModifierContext['compileFilter'],
  collation: Collation | undefined,
): (item: unknown) => boolean {
  const first = isDocument(argument) ? firstKey(argument) : undefined;
  const logical = first !== undefined && ['$and', '$or', '$nor', '$expr'].includes(first);
  if (isDocument(argument) && (!first?.startsWith('$') || logical || first === '$ref')) {
    const predicate = filterOf(argument);
    return (item) => isDocument(item) && predicate.test(item);
  }
  if (isDocument(argument) || isRegex(argument)) {
    const predicate = filterOf({ item: argument });
    return (item) => predicate.test({ item });
  }
  const key = toKey(argument, collation);
  return (item) => toKey(item, collation) === key;
}

const pullAll: ModifierCompiler = (argument, _field, { ctx }) => {
  if (!Array.isArray(argument))
    throw badValue(`$pullAll requires an array argument but was given a ${typeName(argument)}`);
  const unwanted = new Set(argument.map((item) => toKey(item, ctx.collation)));
  return (current) => pullFrom(current, (item) => unwanted.has(toKey(item, ctx.collation)));
};
/** The value of a field is not used by these when it is missing, except that `$push` and `$addToSet` create it. */
export const arrayModifiers: Readonly<Record<string, ModifierCompiler>> = {
  $push: push,
  $addToSet: addToSet,
  $pop: pop,
  $pull: pull,
  $pullAll: pullAll,
};
