import { spawn } from 'node:child_process';
import { freePort } from './free-port.mjs';
import { ensureProgram } from './system-package.mjs';

/** A Redis of one's own on a free loopback port, which keeps nothing. */
export async function startRedisServer() {
  const missing = ensureProgram('redis-server');
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
