import { mongoError } from '../../errors.js';
import { compareValues, sortComparator } from '../../bson/compare.js';
import { getField, isDocument, type Document } from '../../bson/document.js';
import { keyOf } from '../../bson/key-string.js';
import { numberKind, toDouble } from '../../bson/number.js';
import { typeName } from '../../bson/type-name.js';
import { positiveCount, smallest } from '../accumulators.js';
import { intArgument, named, positional, unary } from '../arguments.js';
import {
  nullish,
  truthy,
  type Builder,
  type Evaluator,
  type OperatorCompiler,
  type OperatorTable,
} from '../evaluate.js';

function array(value: unknown, name: string, code: number): unknown[] | null {
  if (nullish(value)) return null;
  if (!Array.isArray(value))
    throw mongoError(code, `input to ${name} must be an array not ${typeName(value)}`);
  return value;
}

/** `$map` and `$filter` evaluate an inner expression per element, under a name of the caller's choice. */
function elementwise(
  argument: unknown,
  builder: Builder,
  name: string,
  body: string,
): { input: Evaluator; each: Evaluator; slot: number } {
  if (!isDocument(argument)) throw mongoError(16878, `${name} only supports an object as its argument`);
  for (const key of ['input', body]) {
    if (!Object.hasOwn(argument, key)) throw mongoError(16880, `Missing '${key}' parameter to ${name}`);
  }
  for (const key of Object.keys(argument)) {
    if (!['input', 'as', body, ...(name === '$filter' ? ['limit'] : [])].includes(key)) {
      throw mongoError(16879, `Unrecognized parameter to ${name}: ${key}`);
    }
  }
  const alias = getField(argument, 'as') ?? 'this';
  if (typeof alias !== 'string') throw mongoError(16866, `'as' of ${name} must be a string`);
  const { builder: inner, slots } = builder.bind([alias]);
  return {
    input: builder.compile(argument['input']),
    each: inner.compile(argument[body]),
    slot: slots[0] as number,
  };
}

const map: OperatorCompiler = (argument, builder, name) => {
  const { input, each, slot } = elementwise(argument, builder, name, 'in');
  const { ctx } = builder;
  return (scope) => {
    const items = array(input(scope), name, 16883);
    if (!items) return null;
    return items.map((item) => {
      ctx.tick();
      scope.variables[slot] = item;
      return each(scope) ?? null;
    });
  };
};

const filter: OperatorCompiler = (argument, builder, name) => {
  const { input, each, slot } = elementwise(argument, builder, name, 'cond');
  const limit = Object.hasOwn(argument as Document, 'limit')
    ? builder.compile((argument as Document)['limit'])
    : undefined;
  const { ctx } = builder;
  return (scope) => {
    const items = array(input(scope), name, 28651);
    if (!items) return null;
    const most = limit?.(scope);
    const count = nullish(most) ? Infinity : intArgument(most, name, 327391, "'limit'");
    if (count < 1) throw mongoError(327392, `${name}: limit must be greater than 0, found: ${count}`);
    const kept: unknown[] = [];
    for (const item of items) {
      ctx.tick();
      scope.variables[slot] = item;
      if (truthy(each(scope)) && kept.push(item) >= count) break;
    }
    return kept;
  };
};

const reduce: OperatorCompiler = (argument, builder, name) => {
  if (!isDocument(argument))
    throw mongoError(40075, `${name} requires an object as an argument, found: ${typeName(argument)}`);
  for (const key of ['input', 'initialValue', 'in']) {
    if (!Object.hasOwn(argument, key)) throw mongoError(40077, `${name} requires '${key}' to be specified`);
  }
  const input = builder.compile(argument['input']);
  const initial = builder.compile(argument['initialValue']);
  const { builder: inner, slots } = builder.bind(['this', 'value']);
  const step = inner.compile(argument['in']);
  const [item, value] = slots as [number, number];
  const { ctx } = builder;
  return (scope) => {
    const items = array(input(scope), name, 40080);
    if (!items) return null;
    let result = initial(scope);
    for (const element of items) {
      ctx.tick();
      scope.variables[item] = element;
      scope.variables[value] = result;
      result = step(scope);
    }
    return result ?? null;
  };
};

const elementAt: OperatorCompiler = (argument, builder, name) => {
  const [input, position] = positional(argument, builder, name, 2) as [Evaluator, Evaluator];
  return (scope) => {
    const items = input(scope);
    const index = position(scope);
    if (nullish(items) || nullish(index)) return null;
    if (!Array.isArray(items))
      throw mongoError(28689, `${name}'s first argument must be an array, but is ${typeName(items)}`);
    const at = intArgument(index, name, 28691, 'its second argument');
    return items.at(at) as unknown;
  };
};

const edge = (position: 0 | -1): OperatorCompiler =>
  unary((value, name) => {
    if (nullish(value)) return null;
    if (!Array.isArray(value))
      throw mongoError(28689, `${name}'s argument must be an array, but is ${typeName(value)}`);
    return value.at(position) as unknown;
  });

const several =
  (keep: (items: unknown[], n: number, builder: Builder) => unknown[]): OperatorCompiler =>
  (argument, builder, name) => {
    const { input, n } = named(argument, builder, name, ['input', 'n']) as Record<'input' | 'n', Evaluator>;
    return (scope) => {
      const count = positiveCount(n(scope), name);
      const items = input(scope);
      if (!Array.isArray(items))
        throw mongoError(5788200, `Input must be an array, found ${typeName(items)} for ${name}`);
      return keep(items, count, builder);
    };
  };

const slice: OperatorCompiler = (argument, builder, name) => {
  const [input, first, second] = positional(argument, builder, name, 2, 3) as [
    Evaluator,
    Evaluator,
    Evaluator | undefined,
  ];
  return (scope) => {
    const items = input(scope);
    const start = first(scope);
    const length = second?.(scope);
    if (nullish(items) || nullish(start) || (second && nullish(length))) return null;
    if (!Array.isArray(items))
      throw mongoError(
        28724,
        `First argument to ${name} must be an array, but is of type: ${typeName(items)}`,
      );
    const from = intArgument(start, name, 28725, 'its second argument');
    if (!second) return from >= 0 ? items.slice(0, from) : items.slice(from);
    const count = intArgument(length, name, 28727, 'its third argument');
    if (count <= 0) throw mongoError(28729, `Third argument to ${name} must be positive: ${count}`);
    const begin = from < 0 ? Math.max(0, items.length + from) : from;
    return items.slice(begin, begin + count);
  };
};

const isIn: OperatorCompiler = (argument, builder, name) => {
  const [value, list] = positional(argument, builder, name, 2) as [Evaluator, Evaluator];
  const collation = builder.ctx.collation;
  // A constant list is hashed once, as permission filters often test membership in long ones.
  const constant =
    Array.isArray(argument) && isConstantList(argument[1])
      ? new Set((argument[1] as unknown[]).map((item) => keyOf(item, collation)))
      : undefined;
  if (constant) return (scope) => constant.has(keyOf(value(scope), collation));
  return (scope) => {
    const items = list(scope);
    if (!Array.isArray(items))
      throw mongoError(40081, `${name} requires an array as a second argument, found: ${typeName(items)}`);
    const wanted = value(scope);
    return items.some((item) => compareValues(item, wanted, collation) === 0);
  };
};

const isConstantList = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.every((item) =>
    typeof item === 'string' ? !item.startsWith('$') : !isDocument(item) && !Array.isArray(item),
  );

const indexOfArray: OperatorCompiler = (argument, builder, name) => {
  const [input, search, from, to] = positional(argument, builder, name, 2, 4) as Evaluator[];
  const collation = builder.ctx.collation;
  return (scope) => {
    const items = input?.(scope);
    if (nullish(items)) return null;
    if (!Array.isArray(items))
      throw mongoError(40090, `${name} requires an array as a first argument, found: ${typeName(items)}`);
    const wanted = search?.(scope);
    const start = from ? nonNegative(from(scope), name) : 0;
    const end = Math.min(items.length, to ? nonNegative(to(scope), name) : items.length);
    for (let i = start; i < end; i++) if (compareValues(items[i], wanted, collation) === 0) return i;
    return -1;
  };
};

function nonNegative(value: unknown, name: string): number {
  const index = intArgument(value, name, 40096, 'an index argument');
  if (index < 0) throw mongoError(40097, `${name} requires a nonnegative index, found: ${index}`);
  return index;
}

const sortArray: OperatorCompiler = (argument, builder, name) => {
  if (!isDocument(argument))
    throw mongoError(2942500, `${name} requires an object as an argument, found: ${typeName(argument)}`);
  if (!Object.hasOwn(argument, 'input'))
    throw mongoError(2942502, `${name} requires 'input' to be specified`);
  if (!Object.hasOwn(argument, 'sortBy'))
    throw mongoError(2942503, `${name} requires 'sortBy' to be specified`);
  const input = builder.compile(argument['input']);
  const order = arrayOrder(argument['sortBy'], builder);
  return (scope) => {
    const items = array(input(scope), name, 2942504);
    return items && [...items].sort(order);
  };
};

function arrayOrder(sortBy: unknown, { ctx }: Builder): (a: unknown, b: unknown) => number {
  if (isDocument(sortBy)) {
    const compare = sortComparator(sortBy, ctx.collation);
    return (a, b) => {
      ctx.tick();
      return isDocument(a) && isDocument(b)
        ? compare(a, b)
        : compareValues(isDocument(a), isDocument(b)) || compareValues(a, b);
    };
  }
  const direction = toDouble(sortBy);
  if (numberKind(sortBy) === undefined || Math.abs(direction) !== 1) {
    throw mongoError(2942507, 'The $sort field must be 1, -1 or an object of sort keys');
  }
  return (a, b) => {
    ctx.tick();
    return compareValues(a, b, ctx.collation) * direction;
  };
}

/** Operators that read and pick the elements of arrays. */
export const arrayOperators: OperatorTable = {
  $map: map,
  $filter: filter,
  $reduce: reduce,
  $arrayElemAt: elementAt,
  $first: edge(0),
  $last: edge(-1),
  $firstN: several((items, n) => items.slice(0, n)),
  $lastN: several((items, n) => items.slice(-n)),
  $minN: several((items, n, { ctx }) =>
    smallest(1)(
      items.filter((item) => !nullish(item)),
      n,
      ctx.collation,
    ),
  ),
  $maxN: several((items, n, { ctx }) =>
    smallest(-1)(
      items.filter((item) => !nullish(item)),
      n,
      ctx.collation,
    ),
  ),
  $slice: slice,
  $in: isIn,
  $indexOfArray: indexOfArray,
  $sortArray: sortArray,
  $size: unary((value, name) => {
    if (!Array.isArray(value))
      throw mongoError(
        17124,
        `The argument to ${name} must be an array, but was of type: ${typeName(value)}`,
      );
    return value.length;
  }),
  $isArray: unary((value) => Array.isArray(value)),
};
