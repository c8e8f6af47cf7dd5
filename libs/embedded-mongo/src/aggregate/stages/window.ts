import { Decimal128 } from 'bson';
import { addNumbers, divideNumbers, multiplyNumbers, subtractNumbers } from '../../bson/arithmetic.js';
import { type Document, firstKey, getField, isDocument } from '../../bson/document.js';
import { compileSort } from '../../bson/keys.js';
import { doubleValue, exactDecimal, numberKind, toDouble, wholeNumber } from '../../bson/number.js';
import { parseFieldPath, withNested } from '../../bson/path.js';
import { createParseError, mongoError } from '../../errors.js';
import type { QueryContext } from '../../query/context.js';
import { PAUSE } from '../../server/steps.js';
import { compileAccumulator } from '../accumulators.js';
import { refuseOthers } from '../arguments.js';
import { type DateUnit, unitLength } from '../date/calendar.js';
import { compileExpression, expressionBuilder } from '../expression.js';
import { NumberSum } from '../folds.js';
import type { StageCompiler, StageTable } from '../stage.js';
import { partitionDocuments, sortWithinMemory, turnIsOver, visitAll } from '../stage.js';
import { type Partition, windowBounds, type WindowBounds } from './window-bounds.js';
import { type Evaluator, nullish, type Scope } from '../evaluate.js';

/** Computes one output value per document of a partition, at once or with pauses. */
type WindowFunction = (partition: Partition) => unknown[] | Generator<typeof PAUSE, unknown[]>;
type WindowCompiler = (
  name: string,
  argument: unknown,
  bounds: WindowBounds,
  ctx: QueryContext,
) => WindowFunction;

const createScope = (doc: Document): Scope => ({ root: doc, current: doc, variables: [] });

/** Compiles one output of `$setWindowFields`. Errors: 9 for an unknown function or a malformed window. */
function windowFunction(spec: unknown, sortBy: unknown, ctx: QueryContext): WindowFunction {
  const name = isDocument(spec) ? firstKey(spec) : undefined;
  if (!isDocument(spec) || name === undefined || !name.startsWith('$'))
    throw createParseError('Expected a $-prefixed window function');
  refuseOthers(spec, [name, 'window'], name, 9);
  const argument = getField(spec, name);
  const window = getField(spec, 'window');
  const special = Object.hasOwn(ordered, name) ? ordered[name] : undefined;
  if (special) {
    const sorted = isDocument(sortBy) ? Object.keys(sortBy).length : 0;
    if ((name !== '$locf' && sorted === 0) || (name === '$documentNumber' && sorted > 1))
      throw mongoError(5371602, `${name} must be specified with a top level sortBy expression`);
    if (window !== undefined) throw mongoError(5371601, `'window' field is not allowed in ${name}`);
    return special(argument, ctx);
  }
  const bounds = windowBounds(window, sortBy);
  if (name === '$derivative' || name === '$integral') return slope(name, argument, bounds, ctx);
  if (name === '$covariancePop' || name === '$covarianceSamp') return covariance(name, argument, bounds, ctx);
  return compileAccumulated(name, argument, bounds, ctx);
}

const compileAccumulated: WindowCompiler = (name, argument, bounds, ctx) => {
  // Unlike a group, a window takes an array for what it is.
  const input = Array.isArray(argument) ? { $concatArrays: [argument] } : argument;
  const plan = compileAccumulator(name, { [name]: input }, expressionBuilder(ctx));
  return function* (partition): Generator<typeof PAUSE, unknown[]> {
    const scopes = partition.docs.map(createScope);
    let accumulator = plan.create();
    let filled = 0;
    const results: unknown[] = [];
    for (let at = 0; at < scopes.length; at++) {
      ctx.tick();
      if (bounds.whole && at > 0) {
        results.push(results[0]);
        continue;
      }
      const [from, to] = bounds.span(partition, at);
      // A window that only grows goes on with what it has; any other is summed afresh.
      if (!bounds.growing) {
        accumulator = plan.create();
        filled = from;
      }
      for (; filled < to; filled++) {
        ctx.tick();
        const scope = scopes[filled] as Scope;
        accumulator.add(plan.input(scope), scope);
        if (turnIsOver(ctx)) yield PAUSE;
      }
      results.push(
        bounds.growing ? accumulator.result() : slidingResult(name, accumulator.result(), to - from),
      );
    }
    return results;
  };
};

/** Over a window that slides MongoDB computes deviations in another way. */
function slidingResult(name: string, result: unknown, size: number): unknown {
  if (!name.startsWith('$stdDev')) return result;
  if (Number.isNaN(toDouble(result))) return null;
  return size === 1 && toDouble(result) === 0 ? 0 : result;
}

function* eachPlace(
  { docs }: Partition,
  valueAt: (at: number) => unknown,
  ctx: QueryContext,
): Generator<typeof PAUSE, unknown[]> {
  const values: unknown[] = [];
  yield* visitAll(ctx, docs.keys(), (at) => void values.push(valueAt(at)));
  return values;
}

type SpecialFunction = (argument: unknown, ctx: QueryContext) => WindowFunction;

const compileRank =
  (next: (state: { rank: number; dense: number }, at: number, tied: boolean) => number): SpecialFunction =>
  (argument) => {
    if (!isDocument(argument) || Object.keys(argument).length > 0)
      throw mongoError(5371603, 'a ranking function takes no arguments');
    return (partition) => {
      const state = { rank: 0, dense: 0 };
      return partition.docs.map((_doc, at) => next(state, at, at > 0 && partition.sameRank(at - 1, at)));
    };
  };

/** An expression among the members of an argument. Errors: 9 without it. */
function readExpression(argument: unknown, member: string, name: string, ctx: QueryContext): Evaluator {
  if (isDocument(argument) && Object.hasOwn(argument, member))
    return expressionBuilder(ctx).compile(argument[member]);
  throw createParseError(`${name} requires an '${member}' expression`);
}
const shift: SpecialFunction = (argument, ctx) => {
  const output = readExpression(argument, 'output', '$shift', ctx);
  const options = argument as Document;
  const by = wholeNumber(getField(options, 'by'));
  if (by === undefined) throw createParseError("'$shift:by' field must be an integer");
  const fallback = expressionBuilder(ctx).compile(getField(options, 'default') ?? null);
  return ({ docs }) =>
    docs.map((doc, at) => {
      const other = docs[at + by];
      return (other ? output(createScope(other)) : fallback(createScope(doc))) ?? null;
    });
};

const lastObservation: SpecialFunction = (argument, ctx) => {
  const value = expressionBuilder(ctx).compile(argument);
  return ({ docs }) => {
    let last: unknown = null;
    return docs.map((doc) => {
      const own = value(createScope(doc));
      if (!nullish(own)) last = own;
      return last;
    });
  };
};

const linearFill: SpecialFunction = (argument, ctx) => {
  const value = expressionBuilder(ctx).compile(argument);
  return ({ docs, keys }) => {
    const values = docs.map((doc) => value(createScope(doc)));
    const place = (at: number): number =>
      keys[at]?.[0] instanceof Date ? Number(keys[at][0]) : toDouble(keys[at]?.[0]);
    const known = values.flatMap((own, at) => {
      if (nullish(own)) return [];
      if (numberKind(own) === undefined) throw mongoError(605005, '$linearFill only supports numeric values');
      return [at];
    });
    let after = 0;
    return values.map((own, at) => {
      if (!nullish(own)) return own;
      while (after < known.length && (known[after] as number) < at) after++;
      const [left, right] = [known[after - 1], known[after]];
      if (left === undefined || right === undefined) return null;
      const share = doubleValue((place(at) - place(left)) / (place(right) - place(left)));
      return addNumbers(values[left], multiplyNumbers(subtractNumbers(values[right], values[left]), share));
    });
  };
};

const compileMovingAverage: SpecialFunction = (argument, ctx) => {
  const input = readExpression(argument, 'input', '$expMovingAvg', ctx);
  const { N: n, alpha: given } = argument as Document;
  const alpha = n === undefined ? toDouble(given) : 2 / (toDouble(n) + 1);
  if (!(alpha > 0 && alpha <= 1))
    throw createParseError('$expMovingAvg needs N as a positive integer or alpha between 0 and 1');
  return ({ docs }) => {
    let average: unknown = null;
    return docs.map((doc) => {
      const value = input(createScope(doc));
      if (numberKind(value) === undefined) return average;
      average =
        average === null
          ? multiplyNumbers(value, value instanceof Decimal128 ? 1 : doubleValue(1))
          : addNumbers(
              multiplyNumbers(value, doubleValue(alpha)),
              multiplyNumbers(average, doubleValue(1 - alpha)),
            );
      return average;
    });
  };
};

/** Functions over the whole ordered partition; they take no window of their own. */
const ordered: Readonly<Record<string, SpecialFunction>> = {
  $rank: compileRank((state, at, tied) => (state.rank = tied ? state.rank : at + 1)),
  $denseRank: compileRank((state, _at, tied) => (state.dense += tied ? 0 : 1)),
  $documentNumber: compileRank((_state, at) => at + 1),
  $shift: shift,
  $locf: lastObservation,
  $linearFill: linearFill,
  $expMovingAvg: compileMovingAverage,
};

function slope(name: string, argument: unknown, bounds: WindowBounds, ctx: QueryContext): WindowFunction {
  const input = readExpression(argument, 'input', name, ctx);
  const unit = getField(argument as Document, 'unit');
  const length = unit === undefined ? 1 : unitLength[unit as DateUnit];
  if (length === undefined) throw mongoError(5490704, 'unit must be "week" or smaller');
  return (partition) => {
    const ys = partition.docs.map((doc) => input(createScope(doc)));
    const xs = partition.keys.map(([key]) => {
      if (key instanceof Date !== (unit !== undefined))
        throw mongoError(5624900, `${name}: 'unit' must be given exactly when the sortBy field is a date`);
      return (key instanceof Date ? Number(key) : toDouble(key)) / length;
    });
    const slopeAt = (at: number): unknown => {
      const [from, to] = bounds.span(partition, at);
      if (name === '$derivative') {
        if (to - from < 2) return null;
        const rise = subtractNumbers(ys[to - 1], ys[from]);
        return divideNumbers(rise, doubleValue((xs[to - 1] as number) - (xs[from] as number)));
      }
      let area: unknown = doubleValue(0);
      for (let i = from + 1; i < to; i++) {
        ctx.tick();
        const width = doubleValue(((xs[i] as number) - (xs[i - 1] as number)) / 2);
        area = addNumbers(area, multiplyNumbers(addNumbers(ys[i], ys[i - 1]), width));
      }
      return area;
    };
    return eachPlace(partition, slopeAt, ctx);
  };
}

const covariance: WindowCompiler = (name, argument, bounds, ctx) => {
  const pair = expressionBuilder(ctx).compile(argument);
  const lost = name === '$covarianceSamp' ? 1 : 0;
  return (partition) => {
    // What is no pair of numbers does not count.
    const pairs = partition.docs
      .map((doc) => pair(createScope(doc)))
      .map((value) => (Array.isArray(value) && value.length === 2 && value.every(isNumber) ? value : []));
    let running = new Covariance();
    let [low, high] = [0, 0];
    const covarianceAt = (at: number): unknown => {
      const [from, to] = bounds.span(partition, at);
      if (from >= high) {
        running = new Covariance();
        low = high = from;
      }
      for (; high < to; high++) running.add(pairs[high] as unknown[]);
      for (; low < from; low++) running.remove(pairs[low] as unknown[]);
      return running.result(lost, pairs.slice(from, to));
    };
    return eachPlace(partition, covarianceAt, ctx);
  };
};

const isNumber = (value: unknown): boolean => numberKind(value) !== undefined;
const isFinite = (value: unknown): boolean => typeof exactDecimal(value) !== 'number';

/** Welford's method in both directions: the order of the steps decides the last digits. */
class Covariance {
  private count = 0;
  private readonly x = new NumberSum();
  private readonly y = new NumberSum();
  private readonly products = new NumberSum();

  add(pair: readonly unknown[]): void {
    if (pair.length === 0 || !pair.every(isFinite)) return;
    const [x, y] = pair;
    const distance = this.count === 0 ? undefined : this.distance(x, this.x);
    this.count++;
    this.x.add(x);
    this.y.add(y);
    if (distance !== undefined) this.products.add(multiplyNumbers(distance, this.distance(y, this.y)));
  }

  remove(pair: readonly unknown[]): void {
    if (pair.length === 0 || !pair.every(isFinite)) return;
    const [x, y] = pair;
    this.count--;
    this.x.add(multiplyNumbers(x, -1));
    const product = multiplyNumbers(this.distance(x, this.x), this.distance(y, this.y, this.count + 1));
    this.products.add(multiplyNumbers(product, -1));
    this.y.add(multiplyNumbers(y, -1));
  }

  /** Infinite numbers decide the result, unless they contradict each other. */
  result(lost: 0 | 1, pairs: readonly (readonly unknown[])[]): unknown {
    if (this.count - lost < 1) return null;
    if (this.count === 1) return doubleValue(0);
    const special = pairs.flat().filter((one) => !isFinite(one));
    if (special.length > 0) return special.reduce<number>((sum, one) => sum + toDouble(one), 0);
    return divideNumbers(this.products.total(), doubleValue(this.count - lost));
  }

  private distance(value: unknown, sum: NumberSum, count = this.count): unknown {
    return subtractNumbers(value, divideNumbers(sum.total(), count));
  }
}

interface OutputField {
  readonly path: readonly string[];
  readonly compute: WindowFunction;
}

const setWindowFields: StageCompiler = (spec, { ctx }) => {
  if (!isDocument(spec)) throw createParseError('the $setWindowFields stage specification must be an object');
  refuseOthers(spec, ['partitionBy', 'sortBy', 'output'], '$setWindowFields', 40415);
  const output = getField(spec, 'output');
  if (!isDocument(output))
    throw mongoError(40414, "BSON field '$setWindowFields.output' is missing but a required field");
  const sortBy = getField(spec, 'sortBy') ?? undefined;
  if (sortBy !== undefined && !isDocument(sortBy))
    throw mongoError(14, "BSON field '$setWindowFields.sortBy' must be an object");
  const order = sortBy ? compileSort(sortBy, ctx.collation) : undefined;
  const partitionBy = compileExpression(getField(spec, 'partitionBy') ?? null, ctx);
  const fields = Object.keys(output).map((name): OutputField => ({
    path: parseFieldPath(name).parts,
    compute: windowFunction(getField(output, name), sortBy, ctx),
  }));

  return function* (source) {
    const partitions = yield* partitionDocuments(ctx, source, (doc) => {
      const value = partitionBy.evaluate(doc) ?? null;
      if (Array.isArray(value))
        throw mongoError(14, 'An expression used to partition cannot evaluate to value of type array');
      return value;
    });
    for (const docs of partitions) {
      let entries = docs.map((doc) => ({ doc, keys: order?.listKeys(doc) ?? [] }));
      if (order) entries = yield* sortWithinMemory(ctx, entries, (a, b) => order.compareKeys(a.keys, b.keys));
      const partition: Partition = {
        docs: entries.map((entry) => entry.doc),
        keys: entries.map((entry) => entry.keys),
        sameRank: (a, b) =>
          order !== undefined && order.compareKeys(entries[a]?.keys ?? [], entries[b]?.keys ?? []) === 0,
      };
      const columns: unknown[][] = [];
      for (const field of fields) {
        const column = field.compute(partition);
        columns.push(Array.isArray(column) ? column : yield* column);
      }
      for (const [i, doc] of partition.docs.entries()) {
        let result = doc;
        for (const [k, field] of fields.entries()) result = withNested(result, field.path, columns[k]?.[i]);
        yield result;
      }
    }
  };
};

export const windowStages: StageTable = { $setWindowFields: setWindowFields };
