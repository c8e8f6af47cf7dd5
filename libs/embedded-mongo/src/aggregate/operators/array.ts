import { compareValues } from '../../bson/compare.js';
import { type Document, firstKey, getField, isDocument, setField } from '../../bson/document.js';
import { toKey, compileElementSort } from '../../bson/keys.js';
import { numberKind, toDouble } from '../../bson/number.js';
import { typeName } from '../../bson/type-name.js';
import { createParseError, mongoError } from '../../errors.js';
import { positiveCount, smallest } from '../accumulators.js';
import {
  binary,
  binaryOrNull,
  indexArgument,
  intArgument,
  named,
  positional,
  refuseOthers,
  requireArray,
  requireDocument,
  requireText,
  several,
  unary,
  unaryOrNull,
  variadic,
  requireMembers,
} from '../arguments.js';
import type { Builder, Evaluator, OperatorCompiler, OperatorTable } from '../evaluate.js';
import { isConstant, nullish, truthy } from '../evaluate.js';

type Keyed = Map<string, unknown>;

function toKeyed(value: unknown, name: string, code: number, builder: Builder): Keyed {
  const { ctx } = builder;
  const result: Keyed = new Map();
  for (const item of requireArray(value, name, code)) {
    ctx.tick();
    const key = toKey(item, ctx.collation);
    if (!result.has(key)) result.set(key, item);
  }
  return result;
}

/** Sets come out in value order, so the same set always reads the same. */
const sortKeyed = (set: Keyed, builder: Builder): unknown[] =>
  [...set.values()].sort((a, b) => compareValues(a, b, builder.ctx.collation));

const pairwise = (code: number, apply: (a: Keyed, b: Keyed) => unknown): OperatorCompiler =>
  binary((a, b, name, builder) =>
    name === '$setDifference' && (nullish(a) || nullish(b))
      ? null
      : apply(toKeyed(a, name, code, builder), toKeyed(b, name, code, builder)),
  );

/** `$anyElementTrue` and `$allElementsTrue` take their list as the only element of an array. */
const elements = (decide: (items: unknown[]) => boolean, code: number): OperatorCompiler =>
  unary((input, name) => decide(requireArray(input, name, code)));

export const isConstantList = (value: unknown): boolean => Array.isArray(value) && value.every(isConstant);

const isIn: OperatorCompiler = (argument, builder, name) => {
  const [value, list] = positional(argument, builder, name, 2) as [Evaluator, Evaluator];
  const collation = builder.ctx.collation;
  // A constant list is hashed once, as permission filters often test membership in long ones.
  const constant =
    Array.isArray(argument) && isConstantList(argument[1])
      ? new Set((argument[1] as unknown[]).map((item) => toKey(item, collation)))
      : undefined;
  if (constant) return (scope) => constant.has(toKey(value(scope), collation));
  return (scope) => {
    const items = requireArray(list(scope), name, 40081);
    const wanted = value(scope);
    return items.some((item) => compareValues(item, wanted, collation) === 0);
  };
};

const indexOfArray = several(2, 4, ([value, wanted, ...ends], name, { ctx }) => {
  if (nullish(value)) return null;
  const items = requireArray(value, name, 40090);
  const [from = 0, to = Infinity] = ends.map((end) => indexArgument(end, name));
  const end = Math.min(items.length, to);
  for (let i = from; i < end; i++) if (compareValues(items[i], wanted, ctx.collation) === 0) return i;
  return -1;
});

const sortArray: OperatorCompiler = (argument, builder, name) => {
  const spec = requireDocument(argument, name, 2942500);
  refuseOthers(spec, ['input', 'sortBy'], name, 2942501);
  requireMembers(spec, ['input'], name, 2942502);
  requireMembers(spec, ['sortBy'], name, 2942503);
  const input = builder.compile(spec['input']);
  const order = arrayOrder(spec['sortBy'], builder);
  return (scope) => {
    const items = input(scope);
    return nullish(items) ? null : requireArray(items, name, 2942504).toSorted(order);
  };
};

function arrayOrder(sortBy: unknown, { ctx }: Builder): (a: unknown, b: unknown) => number {
  if (isDocument(sortBy)) {
    if (firstKey(sortBy) === undefined) throw mongoError(2942505, '$sortArray needs at least one key');
    const order = compileElementSort(sortBy, ctx.collation);
    return (a, b) => {
      ctx.tick();
      return order(a, b);
    };
  }
  const direction = toDouble(sortBy);
  if (numberKind(sortBy) === undefined || Math.abs(direction) !== 1)
    throw mongoError(2942507, 'The $sort field must be 1, -1 or an object of sort keys');
  return (a, b) => {
    ctx.tick();
    return compareValues(a, b, ctx.collation) * direction;
  };
}

/** As many elements as fit a document; repeated doubling must end before the memory does. */
const mostElements = 1_000_000;

const range = several(2, 3, ([first, last, by = 1], name) => {
  const start = intArgument(first, name, 34444, 'a starting value');
  const end = intArgument(last, name, 34446, 'an ending value');
  const step = intArgument(by, name, 34448, 'a step value');
  if (step === 0) throw mongoError(34449, `${name} requires a non-zero step value`);
  const length = Math.max(0, Math.ceil((end - start) / step));
  if (length > mostElements) throw mongoError(146, `${name} would build an array of ${length} elements`);
  return Array.from({ length }, (_, i) => start + i * step);
});

const zip: OperatorCompiler = (argument, builder, name) => {
  if (!isDocument(argument)) throw mongoError(34460, `${name} only supports an object as an argument`);
  const inputs = getField(argument, 'inputs');
  if (!Array.isArray(inputs) || inputs.length === 0)
    throw mongoError(34461, `inputs must be a non-empty array of expressions`);
  const lists = inputs.map((item) => builder.compile(item));
  refuseOthers(argument, ['inputs', 'useLongestLength', 'defaults'], name, 34464);
  const longest = getField(argument, 'useLongestLength') ?? false;
  if (typeof longest !== 'boolean') throw mongoError(34463, 'useLongestLength must be a bool');
  const given = getField(argument, 'defaults');
  if (given !== undefined && !longest)
    throw mongoError(34466, 'cannot specify defaults unless useLongestLength is true');
  if (given !== undefined && (!Array.isArray(given) || given.length !== inputs.length))
    throw mongoError(34467, 'defaults and inputs must have the same length');
  const defaults = Array.isArray(given) ? given.map((item) => builder.compile(item)) : undefined;
  return (scope) => {
    const values = lists.map((list) => list(scope));
    if (values.some(nullish)) return null;
    const arrays = values.map((value) => requireArray(value, name, 34468));
    const lengths = arrays.map((items) => items.length);
    const length = longest ? Math.max(...lengths) : Math.min(...lengths);
    const fill = defaults?.map((item) => item(scope) ?? null);
    return Array.from({ length }, (_, i) =>
      arrays.map((items, k) => (i < items.length ? items[i] : (fill?.[k] ?? null))),
    );
  };
};

function readPair(item: unknown, name: string): [string, unknown] {
  if (Array.isArray(item)) {
    if (item.length !== 2) throw mongoError(40397, `${name} requires pairs, found ${item.length} values`);
    return [requireText(item[0], `A key of ${name}`, 40395), item[1]];
  }
  if (!isDocument(item))
    throw mongoError(40398, `Unrecognised input type format for ${name}: ${typeName(item)}`);
  if (Object.keys(item).length !== 2 || !Object.hasOwn(item, 'k') || !Object.hasOwn(item, 'v'))
    throw mongoError(40393, `${name} requires an object with keys 'k' and 'v'. Missing either or both keys`);
  return [requireText(item['k'], `A key of ${name}`, 40394), item['v']];
}

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
  requireMembers(argument, ['input', body], name, 16880);
  refuseOthers(argument, ['input', 'as', body, ...(name === '$filter' ? ['limit'] : [])], name, 16879);
  const alias = Object.hasOwn(argument, 'as') ? argument['as'] : 'this';
  if (typeof alias !== 'string') throw createParseError(`'as' of ${name} must be a string`);
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
  refuseOthers(spec, ['input', 'initialValue', 'in'], name, 40076);
  requireMembers(spec, ['input', 'initialValue', 'in'], name, 40077);
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
  $in: isIn,
  $indexOfArray: indexOfArray,
  $sortArray: sortArray,
  $concatArrays: variadic((values, name) => {
    const result: unknown[] = [];
    for (const value of values) {
      if (nullish(value)) return null;
      const items = requireArray(value, name, 28664);
      if (result.length + items.length > mostElements)
        throw mongoError(146, `${name} would build an array of over ${mostElements} elements`);
      for (const item of items) result.push(item);
    }
    return result;
  }),
  $reverseArray: unaryOrNull((value, name) => requireArray(value, name, 34435).toReversed()),
  $range: range,
  $zip: zip,
  $arrayToObject: (argument, builder, name) => {
    // The argument may be the list of pairs itself, so only [[…]] with one inner list is unwrapped.
    const unwrap = Array.isArray(argument) && argument.length === 1;
    const input = builder.compile(unwrap ? argument[0] : argument);
    return (scope) => {
      const value = input(scope);
      if (nullish(value)) return null;
      const result: Document = {};
      const items = requireArray(value, name, 40386);
      const pairs = Array.isArray(items[0]);
      for (const item of items) {
        if (Array.isArray(item) !== pairs)
          throw mongoError(pairs ? 40396 : 40391, `${name} takes pairs or objects, not both`);
        const [key, field] = readPair(item, name);
        setField(result, key, field ?? null);
      }
      return result;
    };
  },
  $objectToArray: unaryOrNull((value, name) =>
    Object.entries(requireDocument(value, name, 40390)).map(([k, v]) => ({ k, v })),
  ),
  $setUnion: variadic((values, name, builder) => {
    const result: Keyed = new Map();
    for (const value of values) {
      if (nullish(value)) return null;
      for (const [key, item] of toKeyed(value, name, 17043, builder))
        if (!result.has(key)) result.set(key, item);
    }
    return sortKeyed(result, builder);
  }),
  $setIntersection: variadic((values, name, builder) => {
    let result: Keyed | undefined;
    for (const value of values) {
      if (nullish(value)) return null;
      const next = toKeyed(value, name, 17047, builder);
      result = result ? new Map([...result].filter(([key]) => next.has(key))) : next;
    }
    return sortKeyed(result ?? new Map(), builder);
  }),
  $setDifference: pairwise(17048, (a, b) => [...a].filter(([key]) => !b.has(key)).map(([, item]) => item)),
  $setIsSubset: pairwise(17046, (a, b) => [...a.keys()].every((key) => b.has(key))),
  $setEquals: variadic((values, name, builder) => {
    if (values.length < 2)
      throw mongoError(17045, `${name} needs at least two arguments had: ${values.length}`);
    const [first, ...rest] = values.map((value) => toKeyed(value, name, 17044, builder)) as [
      Keyed,
      ...Keyed[],
    ];
    return rest.every((set) => set.size === first.size && [...set.keys()].every((key) => first.has(key)));
  }),
  $anyElementTrue: elements((items) => items.some(truthy), 17041),
  $allElementsTrue: elements((items) => items.every(truthy), 17040),
};
