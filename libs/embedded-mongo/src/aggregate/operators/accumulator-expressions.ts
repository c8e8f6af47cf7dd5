import { Long } from 'bson';
import { doubleValue, numberKind, toDouble } from '../../bson/number.js';
import { average, deviation, extreme, mergeObjects, sum, type Accumulator } from '../folds.js';
import { positional } from '../arguments.js';
import { type Builder, type Evaluator, type OperatorCompiler, type OperatorTable } from '../evaluate.js';
import { percentileSpec, computePercentiles } from '../percentile.js';

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

const percentile: OperatorCompiler = (argument, builder, name) => {
  const spec = percentileSpec(argument, builder, name);
  const input: Evaluator = spec.input;
  return (scope) => {
    const value = input(scope);
    const items: unknown[] = Array.isArray(value) ? value : [value];
    return computePercentiles(items.filter((item) => numberKind(item) !== undefined).map(toDouble), spec);
  };
};

export const accumulatorExpressions: OperatorTable = {
  $sum: compileFold(sum),
  // As an expression it takes 64-bit numbers for doubles.
  $avg: compileFold(() => average((value) => (value instanceof Long ? doubleValue(toDouble(value)) : value))),
  $min: compileFold((builder) => extreme(1, builder.ctx.collation)),
  $max: compileFold((builder) => extreme(-1, builder.ctx.collation)),
  $stdDevPop: compileFold(() => deviation(false)),
  $stdDevSamp: compileFold(() => deviation(true)),
  $median: percentile,
  $percentile: percentile,
  $mergeObjects: compileFold(mergeObjects),
};
