// Makes sure that `redis-server` can be started: from the machine, else from the system's packages where that is allowed.
import { spawn } from 'node:child_process';
import { freePort } from './free-port.mjs';
import { ensurePackage, runs } from './system-package.mjs';

const isThere = () => runs('redis-server', ['--version']);

/** @returns a sentence that says what is missing, or null when nothing is */
export function ensureRedisServer() {
  return ensurePackage(
    'redis-server',
    isThere,
    'redis-server is missing: install the package `redis-server` (Debian, Ubuntu), `redis` (Fedora, Alpine, Homebrew), ' +
      'version 6.2 or newer, so that `redis-server` is on the PATH',
  );
}

/** A Redis of one's own on a free loopback port, which keeps nothing. */
export async function startRedisServer() {
  const missing = ensureRedisServer();
  if (missing) throw new Error(missing);
  const port = await freePort();
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const child = spawn('redis-server', options, { stdio: ['ignore', 'pipe', 'inherit'] });
  // Whatever ends its owner ends it as well.
  process.once('exit', () => child.kill('SIGKILL'));
  /** @type {Promise<void>} */
  const ready = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`redis-server ended with ${code}`)));
    child.stdout.on('data', (chunk) => /Ready to accept connections/.test(String(chunk)) && resolve());
  });
  await ready;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  return {
    url: `redis://127.0.0.1:${port}`,
    close: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
