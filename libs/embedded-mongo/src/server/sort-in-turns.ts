import { PAUSE } from './drain.js';
import type { Operation } from './operation.js';

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
