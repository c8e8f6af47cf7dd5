import { mongoError } from '../../errors.js';
import { getField, isDocument, type Document } from '../../bson/document.js';
import { typeName } from '../../bson/type-name.js';
import { positiveCount, smallest } from '../accumulators.js';
import { intArgument, readNamedArguments, positional, unary } from '../arguments.js';
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
    const { input, n } = readNamedArguments(argument, builder, name, ['input', 'n']) as Record<
      'input' | 'n',
      Evaluator
    >;
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
