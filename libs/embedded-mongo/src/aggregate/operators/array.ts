import { mongoError } from '../../errors.js';
import { getField, isDocument, type Document } from '../../bson/document.js';
import { positiveCount, smallest } from '../accumulators.js';
import {
  intArgument,
  refuseOthers,
  requireArray,
  requireDocument,
  unary,
  unaryOrNull,
  several,
  named,
  binaryOrNull,
} from '../arguments.js';
import {
  nullish,
  truthy,
  type Builder,
  type Evaluator,
  type OperatorCompiler,
  type OperatorTable,
} from '../evaluate.js';

const array = (value: unknown, name: string, code: number): unknown[] | null =>
  nullish(value) ? null : requireArray(value, name, code);

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
  refuseOthers(argument, ['input', 'as', body, ...(name === '$filter' ? ['limit'] : [])], name, 16879);
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
  const spec = requireDocument(argument, name, 40075);
  for (const key of ['input', 'initialValue', 'in']) {
    if (!Object.hasOwn(spec, key)) throw mongoError(40077, `${name} requires '${key}' to be specified`);
  }
  const input = builder.compile(spec['input']);
  const initial = builder.compile(spec['initialValue']);
  const { builder: inner, slots } = builder.bind(['this', 'value']);
  const step = inner.compile(spec['in']);
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

const elementAt = binaryOrNull((items, index, name) =>
  requireArray(items, name, 28689).at(intArgument(index, name, 28691, 'its second argument')),
);

const edge = (position: 0 | -1): OperatorCompiler =>
  unaryOrNull((value, name) => requireArray(value, name, 28689).at(position));

const keepSome = (keep: (items: unknown[], n: number, builder: Builder) => unknown[]): OperatorCompiler =>
  named(['input', 'n'], [], ({ input, n }, name, builder) => {
    const count = positiveCount(n, name);
    return keep(requireArray(input, name, 5788200), count, builder);
  });

const extremes = (direction: 1 | -1): OperatorCompiler =>
  keepSome((items, n, { ctx }) => {
    const values = items.filter((item) => !nullish(item));
    return smallest(direction)(values, n, ctx.collation);
  });

const slice = several(2, 3, (values, name) => {
  if (values.some(nullish)) return null;
  const [value, first, third] = values;
  const items = requireArray(value, name, 28724);
  const from = intArgument(first, name, 28725, 'its second argument');
  if (values.length === 2) return from >= 0 ? items.slice(0, from) : items.slice(from);
  const count = intArgument(third, name, 28727, 'its third argument');
  if (count <= 0) throw mongoError(28729, `Third argument to ${name} must be positive: ${count}`);
  const begin = from < 0 ? Math.max(0, items.length + from) : from;
  return items.slice(begin, begin + count);
});

/** Operators that read and pick the elements of arrays. */
export const arrayOperators: OperatorTable = {
  $map: map,
  $filter: filter,
  $reduce: reduce,
  $arrayElemAt: elementAt,
  $first: edge(0),
  $last: edge(-1),
  $firstN: keepSome((items, n) => items.slice(0, n)),
  $lastN: keepSome((items, n) => items.slice(-n)),
  $minN: extremes(1),
  $maxN: extremes(-1),
  $slice: slice,
  $size: unary((value, name) => requireArray(value, name, 17124).length),
  $isArray: unary((value) => Array.isArray(value)),
};
