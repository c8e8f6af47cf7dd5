// Two clones of the commit in folders of different names make every archive: the bytes must be the same. Beside `npm test` the first
// clone packs what was built for the tests. Licences, SBOMs and verdicts are checked by their scenario
// (test/e2e/operations/supply-chain.e2e-spec.ts).
import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runSpecs } from './support/spec-batches.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const SPEC = 'test/e2e/operations/supply-chain.e2e-spec.ts';
/** The least that a build of all archives takes; with less time the scenario alone runs. */
const MINUTES_OF_BUILDS = 1;
/** Packages of their own, which the MCP bundle and the documentation need. */
const TREES = { '.': 'packages', 'tools/conformance': 'mcpb', 'tools/docs-site': 'docs' };

/** What a build makes, and what another step makes of it. */
const BUILT = ['dist', 'libs/embedded-mongo/dist'];
const ARCHIVES = /^packages$/;

export const part = {
  title: 'Archives of two clones, their licences, SBOMs and verdicts',
  // Twice every archive, beside the tests on a machine of two cores.
  minutes: 10,
  // Its scenario is one of `npm test`.
  brief: 0,
};

export async function run({ minutes, log, signal }) {
  const losses = [];
  const notes = [];
  const figures = [];
  // `npm test -- --delivery` has built, and runs the scenario beside this part.
  const isBuilt = process.env['PARLEY_BUILT'] === root;
  if (!isBuilt) {
    const { failed, ran } = await runSpecs([SPEC], { signal });
    losses.push(...failed.map((text) => `licences, SBOMs or verdicts are not in order: ${text}`));
    figures.push({ name: 'checks of licences, SBOMs and verdicts', value: ran, unit: '', atLeast: 1 });
    log('licences, SBOMs and verdicts were compared');
  }

  const audit = await output(process.execPath, [join(root, 'tools/audit.mjs')], root, signal);
  // 2: the registry did not answer, as many mirrors do not.
  if (audit.code !== 0 && audit.code !== 2) losses.push(`the audit ended with ${audit.code}:\n${audit.text}`);
  notes.push(audit.code === 2 ? `The audit could not be made here: ${audit.text.trim()}` : audit.text.trim());

  if (minutes < MINUTES_OF_BUILDS) {
    notes.push('The archives were not built twice: that takes minutes.');
    return { losses, figures, series: [], notes };
  }
  const folder = mkdtempSync(join(tmpdir(), 'parley-proof-supply-'));
  try {
    const kinds = Object.entries(TREES).flatMap(([tree, kind]) => (isComplete(tree, kind) ? [kind] : []));
    for (const kind of Object.values(TREES).filter((one) => !kinds.includes(one)))
      notes.push(`${kind} was not built: run \`node tools/test-partners.mjs\` first.`);
    const places = [join(folder, 'one'), join(folder, 'a-folder-of-another-name/two')];
    const sums = [];
    for (const [index, place] of places.entries()) {
      await clone(place, signal);
      const isBuiltHere = isBuilt && index === 0;
      for (const folder of isBuiltHere ? BUILT : [])
        await link(join(root, folder), join(place, folder), ARCHIVES, signal);
      const begun = performance.now();
      // Nothing may depend on the time zone, the language, the user's mask or the time.
      const env = {
        ...(index === 0 ? { TZ: 'UTC', LANG: 'C.UTF-8' } : { TZ: 'Asia/Tokyo', LANG: 'C' }),
        PARLEY_BUILT: isBuiltHere ? join(place, '/') : '',
      };
      const only = [...kinds, 'chart', 'sbom'].join(',');
      const command = `umask ${index === 0 ? '022' : '027'}; exec "${process.execPath}" tools/${index === 0 ? 'release' : 'archives'}.mjs --only ${only}`;
      const made = await output('sh', ['-c', command], place, signal, env);
      if (made.code !== 0) throw new Error(`the archives cannot be made:\n${made.text.slice(-3_000)}`);
      sums.push(readFileSync(join(place, 'dist/packages/SHA256SUMS'), 'utf8').match(/.+/g) ?? []);
      figures.push({
        name: `clone ${index + 1}: all archives`,
        value: Math.round((performance.now() - begun) / 1000),
        unit: 's',
      });
      log(`clone ${index + 1}: ${sums.at(-1).length} archives`);
    }
    const [one, two] = sums;
    const differ = [...one, ...two].filter((line) => !one.includes(line) || !two.includes(line));
    for (const name of new Set(differ.map((line) => line.split('  ')[1])))
      losses.push(`${name} has other bytes in another folder`);
    figures.push({
      name: 'archives with the same bytes',
      value: one.filter((line) => two.includes(line)).length,
      unit: '',
      atLeast: Math.max(1, one.length),
    });
    notes.push(...one);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return { losses, figures, series: [], notes };
}

function isComplete(tree, kind) {
  const needed = { mcpb: '@anthropic-ai/mcpb', docs: 'vitepress', packages: 'rolldown' };
  return existsSync(join(root, tree, 'node_modules', needed[kind]));
}

/** A clone of the commit with packages of its own: a link would lead both to one folder. */
async function clone(place, signal) {
  mkdirSync(dirname(place), { recursive: true });
  const cloned = await output('git', ['clone', '--quiet', root, place], root, signal);
  if (cloned.code !== 0) throw new Error(`git clone: ${cloned.text}`);
  for (const tree of Object.keys(TREES)) {
    const packages = join(root, tree, 'node_modules');
    // What Vitest keeps for itself comes and goes.
    if (existsSync(packages))
      await link(realpathSync(packages), join(place, tree, 'node_modules'), /^\.vite/, signal);
  }
}

/** The same files in another folder, but for those whose names are meant by `except`. */
async function link(from, target, except, signal) {
  mkdirSync(target, { recursive: true });
  const names = readdirSync(from).filter((name) => !except.test(name));
  const paths = names.map((name) => join(from, name));
  const linked = await output('cp', ['-al', ...paths, target], root, signal);
  // Another file system has no hard links.
  if (linked.code !== 0)
    for (const name of names)
      cpSync(join(from, name), join(target, name), { recursive: true, force: true, verbatimSymlinks: true });
}

function output(command, args, cwd, signal, env = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      signal,
    });
    let text = '';
    child.stdout.on('data', (chunk) => (text += chunk));
    child.stderr.on('data', (chunk) => (text += chunk));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, text }));
  });
}
