import { badValue } from '../errors.js';
import { doubleValue, numberKind, toDouble } from '../bson/number.js';
import { readNamedArguments } from './arguments.js';
import type { Builder, Evaluator } from './evaluate.js';

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
  if (parts.method?.(constant) !== 'approximate') {
    throw badValue("Currently only 'approximate' can be used as percentile 'method'.");
  }
  const given = single ? [0.5] : parts.p?.(constant);
  if (!Array.isArray(given) || given.length === 0)
    throw badValue("The $percentile 'p' field must be an array of numbers");
  const probabilities = given.map((value: unknown) => {
    const p = toDouble(value);
    if (numberKind(value) === undefined || !(p >= 0 && p <= 1)) {
      throw badValue("The $percentile 'p' field must be an array of numbers from [0.0, 1.0]");
    }
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
