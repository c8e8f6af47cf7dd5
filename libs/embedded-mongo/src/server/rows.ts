import { PAUSE, type Step } from './drain.js';

/** A sequence of results that may pause, and that may know its end before it is asked once more. */
export interface Rows<T> {
  next(): IteratorResult<Step<T>>;
  /** True when it is already certain that nothing follows. */
  isFinished(): boolean;
}

export function toRows<T>(items: readonly T[]): Rows<T> {
  let at = 0;
  return {
    next: () =>
      at < items.length ? { done: false, value: items[at++] as T } : { done: true, value: undefined },
    isFinished: () => at >= items.length,
  };
}

/** Rows of an iterator, without the first `skip` and at most `limit` of them; 0 for no limit. */
export function rowsFrom<T>(iterator: Iterator<Step<T>>, skip = 0, limit = 0): Rows<T> {
  let skipped = 0;
  let taken = 0;
  const full = (): boolean => limit > 0 && taken >= limit;
  return {
    next: () => {
      if (full()) return { done: true, value: undefined };
      for (;;) {
        const step = iterator.next();
        if (step.done) return { done: true, value: undefined };
        if (step.value === PAUSE) return step;
        if (skipped < skip) {
          skipped += 1;
          continue;
        }
        taken += 1;
        return step;
      }
    },
    isFinished: full,
  };
}

export function mapRows<T, U>(rows: Rows<T>, map: (item: T) => U): Rows<U> {
  return {
    next: () => {
      const step = rows.next();
      if (step.done || step.value === PAUSE) return step as IteratorResult<Step<U>>;
      return { done: false, value: map(step.value) };
    },
    isFinished: () => rows.isFinished(),
  };
}
