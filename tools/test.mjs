// `npm test`: lint, formatting, types, import table, dead code, and every unit and scenario test; with `--conformance` the
// official conformance suite as well. Ends with one plain line: "N passed, N failed".
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runSteps } from './run-steps.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
/** @param {string} name */
const bin = (name) => join(root, 'node_modules', '.bin', name);
/** @param {string[]} args */
const node = (...args) => ({ command: process.execPath, args });
// The native compiler: five times as fast as the one that the Nest CLI drives, with the same answers.
const tsc = 'node_modules/typescript-native/bin/tsc';
const scratch = mkdtempSync(join(tmpdir(), 'parley-test-'));
const report = join(scratch, 'report.json');
const forTests = process.argv.slice(2).filter((arg) => arg !== '--conformance');

// What others wait for, and what takes long, comes first. Tests wait a lot: one lane of checks runs beside them, of those that
// change nothing in dist.
const steps = [
  { name: 'test partners', ...node('tools/test-partners.mjs'), waits: true },
  { name: 'build', ...node('tools/build/build.mjs') },
  { name: 'public surface', ...node('tools/api.mjs'), after: ['build'] },
  // The declarations that it packs are those of the public surface.
  { name: 'packages', ...node('tools/pack-check.mjs'), after: ['build'], behind: ['public surface'] },
  {
    name: 'tests',
    command: bin('vitest'),
    args: [
      'run',
      '--reporter=default',
      '--reporter=json',
      '--reporter=./tools/retried-tests.mjs',
      `--outputFile=${report}`,
      ...forTests,
    ],
    behind: ['build', 'test partners', 'public surface', 'packages'],
    live: true,
  },
  ...(process.argv.includes('--conformance')
    ? [
        {
          name: 'conformance',
          ...node('tools/conformance.mjs'),
          after: ['build', 'test partners'],
          waits: true,
        },
      ]
    : []),
  { name: 'other versions of Node', ...node('tools/other-nodes.mjs'), after: ['build', 'test partners'] },
  {
    name: 'format',
    command: bin('prettier'),
    args: ['--check', 'src', 'libs', 'test', 'tools', 'examples', '--log-level', 'warn'],
  },
  { name: 'lint', command: bin('oxlint'), args: ['--type-aware'] },
  { name: 'types', ...node(tsc, '-p', 'tsconfig.json') },
  {
    name: 'imports',
    command: bin('depcruise'),
    args: ['src', 'libs', '--config', '.dependency-cruiser.mjs'],
  },
  { name: 'dead code', command: bin('knip'), args: ['--no-progress'] },
  { name: 'types of the tools', ...node(tsc, '-p', 'tools'), after: ['build'] },
  { name: 'types of the page', ...node(tsc, '-p', 'libs/console/page') },
  { name: 'types of the views', ...node(tsc, '-p', 'libs/views/page') },
];

const env = { ...process.env, CI: process.env.CI ?? '' };
const failedSteps = await runSteps(steps, { cwd: root, env });

let passed = 0;
let failed = failedSteps.filter((name) => name !== 'tests').length;
try {
  /** @type {{ numPassedTests: number, numFailedTests: number, testResults: { status: string, assertionResults: { status: string }[] }[] }} */
  const summary = JSON.parse(readFileSync(report, 'utf8'));
  passed = summary.numPassedTests;
  failed += summary.numFailedTests;
  // A file that could not be loaded holds no failed test of its own, yet it is a failure.
  failed += summary.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.every((t) => t.status !== 'failed'),
  ).length;
  // An error outside a test fails none of them.
  if (failed === 0 && failedSteps.includes('tests')) failed = 1;
} catch {
  failed += 1;
}
rmSync(scratch, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
