// `npm test`: lint, formatting, types, import table, dead code, packages, and every unit and scenario test; with `--conformance` the
// official conformance suite as well, with `--delivery` the image and every archive. Ends with one plain line: "N passed, N failed".
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
/** Each checker finds out about the types of packages for itself, and the cores have enough to do. @param {string} project */
const check = (project) => node(tsc, '-p', project, '--checkers', '1');
const scratch = mkdtempSync(join(tmpdir(), 'parley-test-'));
const report = join(scratch, 'report.json');
const OWN = ['--conformance', '--delivery'];
const forTests = process.argv.slice(2).filter((arg) => !OWN.includes(arg));
/** @param {string} option */
const asks = (option) => process.argv.includes(option);

/** @param {boolean} asked @param {import('./run-steps.mjs').Step[]} more */
const where = (asked, ...more) => (asked ? more : []);
const built = ['build', 'test partners'];

// What others wait for comes first, then what takes seconds. Tests wait a lot: one lane of checks runs beside them, of those that
// change nothing of dist that a test reads.
/** @type {import('./run-steps.mjs').Step[]} */
const steps = [
  { name: 'test partners', ...node('tools/test-partners.mjs'), waits: true },
  { name: 'build', ...node('tools/build/build.mjs') },
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
    behind: built,
    live: true,
    limit: 45 * 60_000,
  },
  ...where(asks('--conformance'), {
    name: 'conformance',
    ...node('tools/conformance.mjs'),
    after: built,
    waits: true,
  }),
  {
    name: 'format',
    command: bin('prettier'),
    args: ['--check', 'src', 'libs', 'test', 'tools', 'examples', '--log-level', 'warn'],
  },
  { name: 'lint', command: bin('oxlint'), args: ['--type-aware'] },
  { name: 'types', ...check('tsconfig.json') },
  {
    name: 'imports',
    command: bin('depcruise'),
    args: ['src', 'libs', '--config', '.dependency-cruiser.mjs'],
  },
  { name: 'dead code', command: bin('knip'), args: ['--no-progress'] },
  { name: 'types of the tools', ...check('tools'), after: ['build'] },
  { name: 'types of the page', ...check('libs/console/page') },
  { name: 'types of the views', ...check('libs/views/page') },
  { name: 'public surface', ...node('tools/api.mjs'), after: ['build'] },
  // The declarations that it packs are those of the public surface.
  { name: 'packages', ...node('tools/pack-check.mjs'), after: ['build'], behind: ['public surface'] },
  { name: 'other versions of Node', ...node('tools/other-nodes.mjs'), after: built },
  {
    name: 'unit tests on other versions of Node',
    ...node('tools/other-nodes.mjs', '--unit', '--shared'),
    after: built,
  },
  // Builds of their own, of the stages of the image and of every archive from two clones.
  ...where(
    asks('--delivery'),
    { name: 'image', ...node('tools/image-check.mjs'), after: ['build'] },
    {
      name: 'archives',
      ...node('tools/proof.mjs', '--part', 'supply', '--report', 'reports/supply'),
      after: built,
      // It packs the declarations of the public surface, as `packages` does.
      behind: ['public surface'],
    },
  ),
];

const env = { ...process.env, CI: process.env.CI ?? '', PARLEY_BUILT: root };
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
