import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const shared = {
  // Packages are met as sources.
  resolve: {
    alias: {
      '@parley/embedded-mongo': fileURLToPath(new URL('libs/embedded-mongo/src/index.ts', import.meta.url)),
      '@parley/testing': fileURLToPath(new URL('libs/testing/src/index.ts', import.meta.url)),
      // Examples are packages of their own, to whom this one is another.
      '@parley/server/mongoose': fileURLToPath(new URL('libs/parley/src/mongoose.ts', import.meta.url)),
      '@parley/server': fileURLToPath(new URL('libs/parley/src/index.ts', import.meta.url)),
    },
  },
  ssr: { resolve: { conditions: ['parley-source'] } },
};

export default defineConfig({
  ...shared,
  test: {
    projects: [
      // A package of the workspace, with a configuration of its own.
      'libs/embedded-mongo',
      {
        ...shared,
        test: {
          name: 'unit',
          include: ['libs/**/*.spec.ts', 'src/**/*.spec.ts', 'examples/*/src/*.test.ts'],
          exclude: ['libs/embedded-mongo/**'],
          pool: 'forks',
          isolate: false,
          // More than there are cores, here and below: many tests wait for something outside.
          maxWorkers: 3,
          // Generous, because property tests share two cores with whatever else runs; no test waits for it.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          setupFiles: ['reflect-metadata'],
        },
      },
      {
        ...shared,
        test: {
          name: 'scenarios',
          include: ['test/**/*.e2e-spec.ts'],
          pool: 'forks',
          // What a file tries runs in processes that it starts: its own module graph is the same for all, and loaded once.
          isolate: false,
          maxWorkers: 3,
          // A bound for what hangs: tests wait for conditions, and start several processes each.
          testTimeout: 120_000,
          hookTimeout: 180_000,
          // Several processes on few cores: one second try in CI, which `tools/retried-tests.mjs` reports. None elsewhere.
          retry: process.env['CI'] ? 1 : 0,
          setupFiles: ['reflect-metadata', './test/support/filter-order.setup.ts'],
        },
      },
    ],
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts', 'libs/*/src/**/*.ts'],
      reporter: ['text-summary', 'lcov'],
    },
  },
});
