// Installs a package of the system where that is allowed: as root, on Debian and what is made of it.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** @param {string} command @param {string[]} args */
export const runs = (command, args) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;

/**
 * @param {string} name
 * @param {() => boolean} isThere returns whether what the package brings can be used
 * @param {string} otherwise a sentence that says what is missing and where it comes from
 * @returns that sentence, or null when nothing is missing
 */
export function ensurePackage(name, isThere, otherwise) {
  if (isThere()) return null;
  const mayInstall = process.getuid?.() === 0 && existsSync('/etc/debian_version');
  if (mayInstall) {
    console.log(`installing ${name}`);
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    /** @param {string[]} args */
    const install = (args) => spawnSync('apt-get', args, { stdio: ['ignore', 'ignore', 'inherit'], env });
    install(['update', '-qq']);
    install(['install', '-y', '-qq', '--no-install-recommends', name]);
    if (isThere()) return null;
  }
  return otherwise;
}
