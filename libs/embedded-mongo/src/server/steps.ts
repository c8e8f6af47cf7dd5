import type { Operation } from './operation.js';

/** An iterator step that produced nothing yet: a scan says it now and then so that others get their turn. */
export const PAUSE = Symbol('pause');

/** An item, or a pause. */
export type Step<T> = T | typeof PAUSE;

/** Steps of a scan between two pauses. */
export const STEPS_PER_PAUSE = 64;

/**
 * Runs an iterator and gives each item to `visit`, letting other connections run in between. Stops when `visit`
 * returns false; true when the iterator came to its end.
 */
export async function drain<T>(
  operation: Operation,
  steps: Iterator<Step<T>>,
  visit: (item: T) => boolean | void,
): Promise<boolean> {
  for (;;) {
    const step = steps.next();
    if (step.done) return true;
    if (step.value !== PAUSE && visit(step.value) === false) return false;
    if (operation.turnIsOver) await operation.breathe();
  }
}

/** All items of an iterator. */
export async function collect<T>(operation: Operation, steps: Iterator<Step<T>>): Promise<T[]> {
  const items: T[] = [];
  await drain(operation, steps, (item) => void items.push(item));
  return items;
}

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

/** Items sorted or merged between two pauses. */
const RUN_LENGTH = 1_024;

/** A stable sort that lets other connections run in between and ends when the operation is stopped. */
export async function sortInTurns<T>(
  operation: Operation,
  items: readonly T[],
  compare: (a: T, b: T) => number,
): Promise<T[]> {
  const steps = sortInSteps(items, compare);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    operation.tick();
    if (operation.turnIsOver) await operation.breathe();
  }
}

/** A stable sort that pauses all along. @returns the sorted items */
export function* sortInSteps<T>(
  items: readonly T[],
  compare: (a: T, b: T) => number,
): Generator<typeof PAUSE, T[]> {
  let runs: T[][] = [];
  for (let at = 0; at < items.length; at += RUN_LENGTH) {
    runs.push(items.slice(at, at + RUN_LENGTH).sort(compare));
    yield PAUSE;
  }
  while (runs.length > 1) {
    const longer: T[][] = [];
    for (let i = 0; i < runs.length; i += 2) {
      longer.push(yield* merge(runs[i] ?? [], runs[i + 1] ?? [], compare));
    }
    runs = longer;
  }
  return runs[0] ?? [];
}

function* merge<T>(
  left: readonly T[],
  right: readonly T[],
  compare: (a: T, b: T) => number,
): Generator<typeof PAUSE, T[]> {
  const merged: T[] = [];
  let l = 0;
  let r = 0;
  while (l < left.length && r < right.length) {
    // Of equal items the earlier one comes first.
    merged.push(compare(left[l] as T, right[r] as T) <= 0 ? (left[l++] as T) : (right[r++] as T));
    if (merged.length % RUN_LENGTH === 0) yield PAUSE;
  }
  return merged.concat(left.slice(l), right.slice(r));
}
