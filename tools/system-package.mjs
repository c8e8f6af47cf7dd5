// Makes sure that a program can be started: from the machine, else from the system's packages where that is allowed: as root, on
// Debian and what is made of it.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** @param {string} command @param {string[]} args */
export const runs = (command, args) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;

const VERSION = ['--version'];
/**
 * By program: what it answers when it is there, the package of Debian with it, and what to install elsewhere.
 * @type {Record<string, { question: string[], package: string, install?: string, title?: string }>}
 */
const PROGRAMS = {
  'redis-server': {
    question: VERSION,
    package: 'redis-server',
    install:
      'the package `redis-server` (Debian, Ubuntu), `redis` (Fedora, Alpine, Homebrew), version 6.2 or newer, so that ' +
      '`redis-server` is on the PATH',
  },
  nginx: {
    question: ['-v'],
    package: 'nginx-light',
    install: 'the package `nginx` so that `nginx` is on the PATH',
  },
  chromium: {
    question: VERSION,
    package: 'chromium',
    title: 'Chromium',
    install:
      'the package `chromium` (Debian, Fedora, Alpine) or `chromium-browser` (Ubuntu), or name an executable in CHROMIUM',
  },
  promtool: { question: VERSION, package: 'prometheus' },
  curl: { question: VERSION, package: 'curl' },
  openssl: { question: ['version'], package: 'openssl' },
};

/**
 * @param {string} name
 * @param {() => boolean} [isThere] whether it can be used, where that is not whether it answers
 * @returns a sentence that says what is missing and where it comes from, or null when nothing is missing
 */
export function ensureProgram(name, isThere = () => runs(name, PROGRAMS[name].question)) {
  if (isThere()) return null;
  const { package: needed, title = name, install = `the package \`${needed}\`` } = PROGRAMS[name];
  if (process.getuid?.() === 0 && existsSync('/etc/debian_version')) {
    console.log(`installing ${needed}`);
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    /** @param {string[]} args */
    const apt = (args) => spawnSync('apt-get', args, { stdio: ['ignore', 'ignore', 'inherit'], env });
    apt(['update', '-qq']);
    apt(['install', '-y', '-qq', '--no-install-recommends', needed]);
    if (isThere()) return null;
  }
  return `${title} is missing: install ${install}`;
}
