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
