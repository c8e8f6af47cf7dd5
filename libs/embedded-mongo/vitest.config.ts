import { defineConfig } from 'vitest/config';

/** The tests of this package alone: `npm test` here, and a project of the tests of the whole repository. */
export default defineConfig({
  test: {
    name: 'embedded-mongo',
    include: ['src/**/*.spec.ts'],
    pool: 'forks',
    isolate: false,
    maxWorkers: 4,
    // Generous, because property tests share two cores with whatever else runs; no test waits for it.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
