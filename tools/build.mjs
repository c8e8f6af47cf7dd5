// Compiles the service into dist/. With --if-needed it does nothing while dist/ is newer than every source file.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const stamp = join(root, 'dist', '.built');

function newest(path) {
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  let latest = stat.mtimeMs;
  for (const entry of readdirSync(path)) latest = Math.max(latest, newest(join(path, entry)));
  return latest;
}

function upToDate() {
  if (!existsSync(stamp)) return false;
  const built = statSync(stamp).mtimeMs;
  return ['src', 'libs', 'tsconfig.json', 'tsconfig.build.json', 'package.json'].every(
    (part) => newest(join(root, part)) <= built,
  );
}

export function build({ ifNeeded = false } = {}) {
  if (ifNeeded && upToDate()) return 0;
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  // stdout belongs to the caller (`parley stdio` speaks a protocol on it): the compiler reports on stderr.
  const run = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  if (run.status === 0) writeFileSync(stamp, '');
  return run.status ?? 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exit(build({ ifNeeded: process.argv.includes('--if-needed') }));
}
