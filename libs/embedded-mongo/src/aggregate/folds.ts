import { addNumbers, divideNumbers } from '../bson/arithmetic.js';
import type { Collation } from '../bson/collation.js';
import { compareValues } from '../bson/compare.js';
import { addDecimals, decimalOfDouble, packDecimal } from '../bson/decimal.js';
import { type Document, isDocument, setField } from '../bson/document.js';
import { toKey } from '../bson/keys.js';
import { doubleValue, integerValue, numberKind, toBigInt, toDouble } from '../bson/number.js';
import { typeName } from '../bson/type-name.js';
import { badValue, mongoError } from '../errors.js';
import { readNamedArguments } from './arguments.js';
import { StageMemory } from './memory.js';
import { type Builder, type Evaluator, nullish, type Scope } from './evaluate.js';

/** A running sum that keeps decimal exactness and reports ints, longs and doubles as the server would. */
export class NumberSum {
  private integers = 0n;
  private doubles = 0;
  private correction = 0;
  private decimal: unknown;
  private widest: 'int' | 'long' | 'double' = 'int';

  add(value: unknown): void {
    const kind = numberKind(value);
    if (kind === undefined) return;
    if (kind === 'decimal')
      this.decimal = this.decimal === undefined ? value : addNumbers(this.decimal, value);
    else if (kind === 'double') {
      this.widest = 'double';
      this.addDouble(toDouble(value));
    } else {
      if (kind === 'long' && this.widest === 'int') this.widest = 'long';
      this.integers += toBigInt(value);
    }
  }

  /** The total in the widest type met. */
  total(): unknown {
    const { widest } = this;
    const doubles = this.doubles + (Number.isFinite(this.correction) ? this.correction : 0);
    if (this.decimal !== undefined) {
      const integers = { coefficient: this.integers, exponent: 0 };
      // Only among themselves doubles are rounded: next to a decimal they count with all their digits.
      const rest = Number.isFinite(doubles)
        ? packDecimal([this.doubles, this.correction].map(decimalOfDouble).reduce(addDecimals, integers))
        : doubles;
      return addNumbers(this.decimal, rest);
    }
    if (widest === 'double') return doubleValue(doubles + Number(this.integers));
    return integerValue(this.integers, widest);
  }

  /** Neumaier's compensation: small terms survive next to large ones. */
  private addDouble(value: number): void {
    const sum = this.doubles + value;
    this.correction +=
      Math.abs(this.doubles) >= Math.abs(value) ? this.doubles - sum + value : value - sum + this.doubles;
    this.doubles = sum;
  }
}

/** Folds the values of one group. */
export interface Accumulator {
  add(value: unknown, scope: Scope): void;
  result(): unknown;
}

export function extreme(direction: 1 | -1, collation: Collation | undefined): Accumulator {
  let best: unknown;
  return {
    add: (value) => {
      if (nullish(value)) return;
      if (best === undefined || compareValues(value, best, collation) * direction < 0) best = value;
    },
    result: () => best ?? null,
  };
}

export function sum(): Accumulator {
  const total = new NumberSum();
  return { add: (value) => total.add(value), result: () => total.total() };
}

/** `read` says as what a number is summed up. */
export function average(read = (value: unknown): unknown => value): Accumulator {
  const total = new NumberSum();
  let count = 0;
  return {
    add: (value) => {
      if (numberKind(value) === undefined) return;
      total.add(read(value));
      count++;
    },
    result: () => (count === 0 ? null : divideNumbers(total.total(), count)),
  };
}

/** Welford's method; the sample form needs two values. */
export function deviation(sample: boolean): Accumulator {
  let count = 0;
  let mean = 0;
  let squares = 0;
  return {
    add: (value) => {
      if (numberKind(value) === undefined) return;
      const x = toDouble(value);
      const before = x - mean;
      mean += before / ++count;
      squares += before * (x - mean);
    },
    result: () => {
      const divisor = sample ? count - 1 : count;
      return divisor < 1 ? null : doubleValue(Math.sqrt(squares / divisor));
    },
  };
}

export function push(): Accumulator {
  const items: unknown[] = [];
  const memory = new StageMemory('$push');
  return {
    add: (value) => {
      if (value === undefined) return;
      memory.hold(value);
      items.push(value);
    },
    result: () => [...items],
  };
}

export function addToSet(collation: Collation | undefined): Accumulator {
  const items = new Map<string, unknown>();
  const memory = new StageMemory('$addToSet');
  return {
    add: (value) => {
      if (value === undefined) return;
      const key = toKey(value, collation);
      if (items.has(key)) return;
      memory.hold(value);
      items.set(key, value);
    },
    result: () => [...items.values()],
  };
}

export function mergeObjects(): Accumulator {
  const merged: Document = {};
  return {
    add: (value) => {
      if (nullish(value)) return;
      if (!isDocument(value))
        throw mongoError(40400, `$mergeObjects requires object inputs, but input ${typeName(value)} is not`);
      for (const key of Object.keys(value)) setField(merged, key, value[key]);
    },
    result: () => ({ ...merged }),
  };
}

/** The compiled argument of `$percentile` or, with one probability and a bare answer, `$median`. */
interface PercentileSpec {
  readonly input: Evaluator;
  readonly probabilities: readonly number[];
  readonly single: boolean;
}

/** Reads `{input, p, method: "approximate"}`; probabilities are constants between 0 and 1. */
export function percentileSpec(argument: unknown, builder: Builder, name: string): PercentileSpec {
  const single = name === '$median';
  const parts = readNamedArguments(
    argument,
    builder,
    name,
    single ? ['input', 'method'] : ['input', 'method', 'p'],
  );
  const constant = { root: {}, current: {}, variables: [] };
  if (parts.method?.(constant) !== 'approximate')
    throw badValue("Currently only 'approximate' can be used as percentile 'method'.");
  const given = single ? [0.5] : parts.p?.(constant);
  if (!Array.isArray(given) || given.length === 0)
    throw badValue("The $percentile 'p' field must be an array of numbers");
  const probabilities = given.map((value: unknown) => {
    const p = toDouble(value);
    if (numberKind(value) === undefined || !(p >= 0 && p <= 1))
      throw badValue("The $percentile 'p' field must be an array of numbers from [0.0, 1.0]");
    return p;
  });
  return { input: parts.input, probabilities, single };
}

/** The discrete percentile: the smallest value that at least the share `p` of all values do not exceed. */
export function computePercentiles(values: number[], spec: PercentileSpec): unknown {
  const sorted = Float64Array.from(values).sort();
  const results = spec.probabilities.map((p) => {
    const value = sorted[Math.min(Math.max(Math.ceil(p * sorted.length) - 1, 0), sorted.length - 1)];
    return value === undefined ? null : doubleValue(value);
  });
  return spec.single ? results[0] : results;
}
