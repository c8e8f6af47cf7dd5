// Compiles the sources into dist/{src,libs} and joins what runs into dist/bundle, what browsers show into dist/pages. With
// --if-needed it does nothing while dist/ is newer than every source file.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const stamp = join(root, 'dist', '.built');
const SOURCES = [
  'src',
  'libs',
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'tools/build',
  'demo/seed.json',
];
/** What builds make; it is newer than what it is made of. */
const BUILT = new Set(['dist', 'node_modules']);
/** Packages of the workspace, which are built for themselves: others meet them as installed ones. */
const WORKSPACE = ['libs/embedded-mongo'];

/** Vite writes a configuration beside its source while it loads it. @param {string} name */
const isSource = (name) => !BUILT.has(name) && !name.includes('.timestamp-');

/**
 * @typedef {{ latest: number, files: number }} Sources when the newest file was written, and how many there are
 * @param {string} path
 * @returns {Sources}
 */
function sourcesIn(path) {
  const stat = statSync(path);
  if (!stat.isDirectory()) return { latest: stat.mtimeMs, files: 1 };
  // The time of a folder itself changes with every temporary file in it.
  return together(
    readdirSync(path)
      .filter(isSource)
      .map((name) => sourcesIn(join(path, name))),
  );
}

/** @param {Sources[]} parts */
const together = (parts) => ({
  latest: Math.max(0, ...parts.map(({ latest }) => latest)),
  files: parts.reduce((sum, { files }) => sum + files, 0),
});

const sources = () => together(SOURCES.map((part) => sourcesIn(join(root, part))));

function upToDate() {
  if (!existsSync(stamp)) return false;
  const { latest, files } = sources();
  return latest <= statSync(stamp).mtimeMs && String(files) === readFileSync(stamp, 'utf8');
}

export function build({ ifNeeded = false } = {}) {
  // Once for all steps of a test run: a file that a test makes for a moment is no change of the sources.
  if (ifNeeded && (process.env['PARLEY_BUILT'] === root || upToDate())) return 0;
  if (ifNeeded) process.stderr.write('Building, once and after every change of the sources …\n');
  for (const folder of ['', ...WORKSPACE])
    rmSync(join(root, folder, 'dist'), { recursive: true, force: true, maxRetries: 3 });
  const status =
    WORKSPACE.reduce(
      (failed, folder) =>
        failed || run('node_modules/typescript-native/bin/tsc', '-p', join(folder, 'tsconfig.build.json')),
      0,
    ) ||
    run('node_modules/typescript-native/bin/tsc', '-p', 'tsconfig.build.json') ||
    run('tools/build/bundle.mjs') ||
    run('tools/build/pages.mjs') ||
    run('tools/build/configuration-schema.mjs') ||
    run('tools/build/demo-data.mjs');
  if (status === 0) writeFileSync(stamp, String(sources().files));
  return status;
}

/**
 * stdout belongs to the caller (`parley stdio` speaks a protocol on it): what compilers say goes to stderr.
 * @param {string} script
 * @param {string[]} args
 */
function run(script, ...args) {
  const command = [join(root, script), ...args];
  return spawnSync(process.execPath, command, { cwd: root, stdio: ['ignore', 2, 2] }).status ?? 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exit(build({ ifNeeded: process.argv.includes('--if-needed') }));
}
