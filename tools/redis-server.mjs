// Makes sure that `redis-server` can be started: from the machine, else from the system's packages where that is allowed.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';

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

/** A Redis of one's own on a free loopback port, which keeps nothing. */
export async function startRedisServer() {
  const missing = ensureRedisServer();
  if (missing) throw new Error(missing);
  const port = await freePort();
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const child = spawn('redis-server', options, { stdio: ['ignore', 'pipe', 'inherit'] });
  // Whatever ends its owner ends it as well.
  process.once('exit', () => child.kill('SIGKILL'));
  await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`redis-server ended with ${code}`)));
    child.stdout.on('data', (chunk) => /Ready to accept connections/.test(String(chunk)) && resolve());
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  return {
    url: `redis://127.0.0.1:${port}`,
    close: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
