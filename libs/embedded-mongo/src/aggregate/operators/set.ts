import { mongoError } from '../../errors.js';
import { compareValues } from '../../bson/compare.js';
import { toKey } from '../../bson/key-string.js';
import { requireArray, variadic, binary, unary } from '../arguments.js';
import { nullish, truthy, type Builder, type OperatorCompiler, type OperatorTable } from '../evaluate.js';

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

export const setOperators: OperatorTable = {
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
