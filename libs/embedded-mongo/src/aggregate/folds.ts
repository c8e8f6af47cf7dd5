import { mongoError } from '../errors.js';
import { divideNumbers } from '../bson/arithmetic.js';
import type { Collation } from '../bson/collation.js';
import { compareValues } from '../bson/compare.js';
import { isDocument, setField, type Document } from '../bson/document.js';
import { toKey } from '../bson/key-string.js';
import { doubleValue, numberKind, toDouble } from '../bson/number.js';
import { typeName } from '../bson/type-name.js';
import { nullish, type Scope } from './evaluate.js';
import { NumberSum } from './number-sum.js';
import { StageMemory } from './stage-memory.js';

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
