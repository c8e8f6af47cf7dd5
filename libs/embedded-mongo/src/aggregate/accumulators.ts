import { Long } from 'bson';
import type { Collation } from '../bson/collation.js';
import { compareValues } from '../bson/compare.js';
import { type Document, getField, isDocument } from '../bson/document.js';
import { compileSort } from '../bson/keys.js';
import { doubleValue, numberKind, toDouble } from '../bson/number.js';
import { typeName } from '../bson/type-name.js';
import { mongoError, scriptRefused } from '../errors.js';
import { intArgument, positional, readNamedArguments } from './arguments.js';
import type { Accumulator } from './folds.js';
import * as folds from './folds.js';
import { StageMemory } from './memory.js';
import type { Builder, Evaluator, OperatorCompiler, OperatorTable } from './evaluate.js';
import { nullish } from './evaluate.js';

/** A compiled accumulator: what to read from each document, and how to start a group. */
export interface AccumulatorPlan {
  readonly input: Evaluator;
  create(): Accumulator;
}

type AccumulatorCompiler = (argument: unknown, builder: Builder, name: string) => AccumulatorPlan;

/** An accumulator whose argument is one expression. */
const simple =
  (create: (collation: Collation | undefined) => Accumulator): AccumulatorCompiler =>
  (argument, builder, name) => {
    if (Array.isArray(argument)) throw mongoError(40237, `The ${name} accumulator is a unary operator`);
    return { input: builder.compile(argument), create: () => create(builder.ctx.collation) };
  };

const edge = (last: boolean): AccumulatorCompiler =>
  simple(() => {
    let value: unknown;
    let seen = false;
    return {
      add: (next) => {
        if (last || !seen) value = next ?? null;
        seen = true;
      },
      result: () => value ?? null,
    };
  });

/** `$firstN`, `$lastN`, `$minN`, `$maxN`: the argument is `{input, n}`. */
const several =
  (
    keep: (items: unknown[], n: number, collation: Collation | undefined) => unknown[],
    skipNull: boolean,
  ): AccumulatorCompiler =>
  (argument, builder, name) => {
    const { input, n } = readNamedArguments(argument, builder, name, ['input', 'n']);
    return {
      input,
      create: () => {
        const items: unknown[] = [];
        const memory = new StageMemory(name);
        let count: number | undefined;
        return {
          add: (value, scope) => {
            count ??= positiveCount(n(scope), name);
            if (skipNull && nullish(value)) return;
            memory.hold(value);
            items.push(value ?? null);
          },
          result: () => keep(items, count ?? 0, builder.ctx.collation),
        };
      },
    };
  };

export function positiveCount(value: unknown, name: string): number {
  const count = intArgument(value, name, 5787902, "'n'");
  if (count < 1) throw mongoError(5787908, `'n' must be greater than 0, found ${count} for ${name}`);
  return count;
}

export const smallest =
  (direction: 1 | -1) =>
  (items: unknown[], n: number, collation: Collation | undefined): unknown[] =>
    [...items].sort((a, b) => compareValues(a, b, collation) * direction).slice(0, n);

/** `$top`, `$bottom` and their N forms: `{sortBy, output, n}`. */
const compileRanked =
  (fromEnd: boolean, many: boolean): AccumulatorCompiler =>
  (argument, builder, name) => {
    if (!isDocument(argument))
      throw mongoError(5788001, `specification must be an object; found ${typeName(argument)}`);
    const sortBy = getField(argument, 'sortBy');
    if (!isDocument(sortBy)) throw mongoError(5788005, `Missing value for 'sortBy' in ${name}`);
    const { sortBy: _spec, ...rest } = argument;
    const compiled = readNamedArguments(rest, builder, name, many ? ['output', 'n'] : ['output']);
    const order = compileSort(sortBy, builder.ctx.collation);
    return {
      input: compiled.output,
      create: () => {
        const entries: { keys: unknown[]; value: unknown }[] = [];
        let count = 1;
        return {
          add: (value, scope) => {
            if (compiled.n && entries.length === 0) count = positiveCount(compiled.n(scope), name);
            entries.push({ keys: order.listKeys(scope.root as Document), value: value ?? null });
          },
          result: () => {
            entries.sort((a, b) => order.compareKeys(a.keys, b.keys));
            const kept = fromEnd ? entries.slice(-count) : entries.slice(0, count);
            const values = kept.map((entry) => entry.value);
            return many ? values : (values[0] ?? null);
          },
        };
      },
    };
  };

const percentile: AccumulatorCompiler = (argument, builder, name) => {
  const spec = folds.percentileSpec(argument, builder, name);
  return {
    input: spec.input,
    create: () => {
      const items: number[] = [];
      return {
        add: (value) => void (numberKind(value) !== undefined && items.push(toDouble(value))),
        result: () => folds.computePercentiles(items, spec),
      };
    },
  };
};

const compilers: Readonly<Record<string, AccumulatorCompiler>> = {
  $sum: simple(folds.sum),
  $avg: simple(() => folds.average()),
  $min: simple((collation) => folds.extreme(1, collation)),
  $max: simple((collation) => folds.extreme(-1, collation)),
  $stdDevPop: simple(() => folds.deviation(false)),
  $stdDevSamp: simple(() => folds.deviation(true)),
  $push: simple(folds.push),
  $addToSet: simple(folds.addToSet),
  $mergeObjects: simple(folds.mergeObjects),
  $first: edge(false),
  $last: edge(true),
  $count: (argument, builder, name) => {
    if (!isDocument(argument) || Object.keys(argument).length > 0)
      throw mongoError(2, `${name} takes no arguments, i.e. $count: {}`);
    return { input: builder.compile({ $literal: 1 }), create: folds.sum };
  },
  $firstN: several((items, n) => items.slice(0, n), false),
  $lastN: several((items, n) => items.slice(-n), false),
  $minN: several(smallest(1), true),
  $maxN: several(smallest(-1), true),
  $top: compileRanked(false, false),
  $bottom: compileRanked(true, false),
  $topN: compileRanked(false, true),
  $bottomN: compileRanked(true, true),
  $median: percentile,
  $percentile: percentile,
};

/** Compiles one output field of `$group`. Errors: 40234 when it is no accumulator, 15952 for an unknown one. */
export function compileAccumulator(field: string, spec: unknown, builder: Builder): AccumulatorPlan {
  if (!isDocument(spec)) throw mongoError(40234, `The field '${field}' must be an accumulator object`);
  const names = Object.keys(spec);
  const [name] = names;
  if (names.length !== 1 || name === undefined)
    throw mongoError(40238, `The field '${field}' must specify one accumulator`);
  if (name === '$accumulator' || name === '$function') throw scriptRefused(name);
  const compile = Object.hasOwn(compilers, name) ? compilers[name] : undefined;
  if (!compile) {
    if (!name.startsWith('$')) throw mongoError(40234, `The field '${field}' must be an accumulator object`);
    throw mongoError(15952, `unknown group operator '${name}'`);
  }
  return compile(getField(spec, name), builder, name);
}

/** As an expression an accumulator folds its arguments, or the elements of a single array argument. */
const compileFold =
  (create: (builder: Builder) => Accumulator): OperatorCompiler =>
  (argument, builder, name) => {
    const all = positional(argument, builder, name, 0, Infinity);
    const [only] = all;
    return (scope) => {
      const accumulator = create(builder);
      if (all.length === 1 && only) {
        const value = only(scope);
        if (Array.isArray(value)) for (const item of value) accumulator.add(item, scope);
        else accumulator.add(value, scope);
      } else for (const one of all) accumulator.add(one(scope), scope);
      return accumulator.result();
    };
  };

const percentileOf: OperatorCompiler = (argument, builder, name) => {
  const spec = folds.percentileSpec(argument, builder, name);
  const input: Evaluator = spec.input;
  return (scope) => {
    const value = input(scope);
    const items: unknown[] = Array.isArray(value) ? value : [value];
    return folds.computePercentiles(
      items.filter((item) => numberKind(item) !== undefined).map(toDouble),
      spec,
    );
  };
};

export const accumulatorExpressions: OperatorTable = {
  $sum: compileFold(folds.sum),
  // As an expression it takes 64-bit numbers for doubles.
  $avg: compileFold(() =>
    folds.average((value) => (value instanceof Long ? doubleValue(toDouble(value)) : value)),
  ),
  $min: compileFold((builder) => folds.extreme(1, builder.ctx.collation)),
  $max: compileFold((builder) => folds.extreme(-1, builder.ctx.collation)),
  $stdDevPop: compileFold(() => folds.deviation(false)),
  $stdDevSamp: compileFold(() => folds.deviation(true)),
  $median: percentileOf,
  $percentile: percentileOf,
  $mergeObjects: compileFold(folds.mergeObjects),
};
