import { afterEach } from 'vitest';

/**
 * Every embedded database of these tests evaluates filters as MongoDB's optimiser may choose, not as they are written. The seed of
 * that order; set the variable to repeat one, or to nothing to evaluate as written.
 */
const VARIABLE = 'EMBEDDED_MONGO_REORDER_FILTERS';
process.env[VARIABLE] ??= String(Math.floor(Math.random() * 1_000_000));

afterEach(({ task }) => {
  if (task.result?.state === 'fail')
    console.error(`filters were evaluated in the order of ${VARIABLE}=${process.env[VARIABLE]}`);
});
