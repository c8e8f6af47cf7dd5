import { defineConfig } from 'vitest/config';
import { sourceAliases } from './tools/source-paths.mjs';

// Sources are met as the compiler meets them.
const shared = { resolve: { alias: sourceAliases() } };

export default defineConfig({
  ...shared,
  test: {
    // Sources that did not change since the last run are not translated again.
    experimental: { fsModuleCache: true, fsModuleCachePath: 'node_modules/.vitest-modules' },
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
          maxWorkers: 4,
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
          maxWorkers: 4,
          // A bound for what hangs: tests wait for conditions, and start several processes each.
          testTimeout: 120_000,
          hookTimeout: 180_000,
          // Several processes on few cores: one second try in CI, which `tools/retried-tests.mjs` reports. None elsewhere.
          retry: process.env['CI'] ? 1 : 0,
          setupFiles: [
            'reflect-metadata',
            './test/support/filter-order.setup.ts',
            './test/support/started.setup.ts',
          ],
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
