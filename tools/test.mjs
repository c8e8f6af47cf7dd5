// `npm test`: lint, formatting, types, import table, then every unit and scenario test.
// Ends with one plain line: "N passed, N failed".
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const bin = (name) => join(root, 'node_modules', '.bin', name);
const scratch = mkdtempSync(join(tmpdir(), 'parley-test-'));
const report = join(scratch, 'report.json');

const steps = [
  { name: 'lint', command: bin('oxlint'), args: ['--type-aware'] },
  {
    name: 'format',
    command: bin('prettier'),
    args: ['--check', 'src', 'libs', 'test', 'tools', '--log-level', 'warn'],
  },
  { name: 'types', command: bin('tsc'), args: ['-p', 'tsconfig.json'] },
  { name: 'types of the page', command: bin('tsc'), args: ['-p', 'libs/console/page'] },
  { name: 'types of the views', command: bin('tsc'), args: ['-p', 'libs/views/page'] },
  { name: 'build', command: process.execPath, args: ['tools/build.mjs'] },
  {
    name: 'imports',
    command: bin('depcruise'),
    args: ['dist/src', 'dist/libs', '--config', '.dependency-cruiser.mjs'],
  },
  { name: 'public surface', command: process.execPath, args: ['tools/api.mjs'] },
  { name: 'packages', command: process.execPath, args: ['tools/pack-check.mjs'] },
  { name: 'test partners', command: process.execPath, args: ['tools/test-partners.mjs'] },
  {
    name: 'tests',
    command: bin('vitest'),
    args: [
      'run',
      '--reporter=default',
      '--reporter=json',
      `--outputFile=${report}`,
      ...process.argv.slice(2),
    ],
  },
];

let failedSteps = 0;
for (const { name, command, args } of steps) {
  const started = Date.now();
  const run = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, CI: process.env.CI ?? '' },
  });
  const ok = run.status === 0;
  if (!ok && name !== 'tests') failedSteps += 1;
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
}

let passed = 0;
let failed = failedSteps;
try {
  const summary = JSON.parse(readFileSync(report, 'utf8'));
  passed = summary.numPassedTests;
  failed += summary.numFailedTests;
  // A file that could not be loaded holds no failed test of its own, yet it is a failure.
  failed += summary.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.every((t) => t.status !== 'failed'),
  ).length;
} catch {
  failed += 1;
}
rmSync(scratch, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
