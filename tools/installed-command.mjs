// Makes sure of a program that tests start: from the machine, else from Debian's packages where that is allowed.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const runs = (command, args) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;

/**
 * @param wanted the command, its package, and arguments that end it at once
 * @returns whether it can be started now
 */
export function ensureCommand({ command, packageName, probe }) {
  if (runs(command, probe)) return true;
  const mayInstall = process.getuid?.() === 0 && existsSync('/etc/debian_version');
  if (!mayInstall) return false;
  console.log(`installing ${packageName}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const install = (args) => spawnSync('apt-get', args, { stdio: ['ignore', 'ignore', 'inherit'], env });
  install(['update', '-qq']);
  install(['install', '-y', '-qq', '--no-install-recommends', packageName]);
  return runs(command, probe);
}

/** @returns a sentence that says what is missing, or null when nothing is */
export function ensureNginx() {
  if (ensureCommand({ command: 'nginx', packageName: 'nginx-light', probe: ['-v'] })) return null;
  return 'nginx is missing: install the package `nginx` so that `nginx` is on the PATH';
}
