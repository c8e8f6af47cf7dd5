// `npm run test:advisories`: the attacks of Parse Server's published advisories, against the running service.
// `-- --prove [ID…]`: removes each guard from a copy of the tree, one at a time, and expects the attack to succeed there.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GUARDS } from './advisory-guards.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const SOURCES = [
  'src',
  'libs',
  'tools',
  'demo',
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'vitest.config.ts',
];
const TESTS = ['test/e2e/advisories', 'test/support', 'test/fixtures'];

/** The one file whose tests carry the advisory in their title; all of them for none. */
function testsOf(tree, advisory) {
  const folder = join(tree, 'test', 'e2e', 'advisories');
  const specs = readdirSync(folder).filter((name) => name.endsWith('.e2e-spec.ts'));
  const named = specs.filter((name) => readFileSync(join(folder, name), 'utf8').includes(advisory));
  return named.map((name) => join('test', 'e2e', 'advisories', name));
}

/** @returns {'green' | 'red' | 'does not build'} of the tests of an advisory, or of every one, in a tree */
function verdict(tree, advisory, stdio) {
  const node = (...args) => spawnSync(process.execPath, args, { cwd: tree, stdio }).status;
  if (node(join('tools', 'build', 'build.mjs'), '--if-needed') !== 0) return 'does not build';
  const vitest = join('node_modules', 'vitest', 'vitest.mjs');
  const bail = stdio === 'ignore' ? ['--bail=1'] : [];
  const tests = ['run', '--project', 'scenarios', ...testsOf(tree, advisory), '-t', advisory, ...bail];
  return node(vitest, ...tests) === 0 ? 'green' : 'red';
}

function copyOfTree() {
  const tree = mkdtempSync(join(tmpdir(), 'parley-advisories-'));
  for (const part of [...SOURCES, ...TESTS]) cpSync(join(root, part), join(tree, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
  return tree;
}

/** @returns {string} what the tests of the advisory say without the guard */
function without({ advisory, file, find, replace }, tree) {
  const path = join(tree, file);
  const source = readFileSync(path, 'utf8');
  if (source.split(find).length !== 2) return 'the guard is not where it was';
  writeFileSync(
    path,
    source.replace(find, () => replace),
  );
  try {
    return verdict(tree, advisory, 'ignore');
  } finally {
    writeFileSync(path, source);
  }
}

function prove(ids) {
  const tree = copyOfTree();
  let unproved = 0;
  try {
    // Otherwise everything would look red.
    if (verdict(tree, 'GHSA-', 'ignore') !== 'green') {
      console.log('FAIL the tests are red while every guard stands');
      return false;
    }
    for (const guard of GUARDS.filter(({ advisory }) => ids.length === 0 || ids.includes(advisory))) {
      const said = without(guard, tree);
      if (said !== 'red') unproved += 1;
      console.log(
        `${said === 'red' ? 'ok  ' : 'FAIL'} ${guard.advisory}  ${guard.guard} (${guard.file}): ${said}`,
      );
    }
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
  console.log(unproved === 0 ? 'every guard is needed' : `${unproved} guards are not proved`);
  return unproved === 0;
}

const [mode, ...ids] = process.argv.slice(2);
const passed = mode === '--prove' ? prove(ids) : verdict(root, 'GHSA-', 'inherit') === 'green';
process.exit(passed ? 0 : 1);
