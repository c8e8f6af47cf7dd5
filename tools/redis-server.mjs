// Makes sure that `redis-server` can be started: from the machine, else from the system's packages where that is allowed.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const runs = (command, args) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;
const isThere = () => runs('redis-server', ['--version']);

/** @returns a sentence that says what is missing, or null when nothing is */
export function ensureRedisServer() {
  if (isThere()) return null;
  const mayInstall = process.getuid?.() === 0 && existsSync('/etc/debian_version');
  if (mayInstall) {
    console.log('installing redis-server');
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const install = (args) => spawnSync('apt-get', args, { stdio: ['ignore', 'ignore', 'inherit'], env });
    install(['update', '-qq']);
    install(['install', '-y', '-qq', '--no-install-recommends', 'redis-server']);
    if (isThere()) return null;
  }
  return (
    'redis-server is missing: install the package `redis-server` (Debian, Ubuntu), `redis` (Fedora, Alpine, Homebrew), ' +
    'version 6.2 or newer, so that `redis-server` is on the PATH'
  );
}
