// Starts the demo once, as `npm start` does, so that V8's code cache lies beside the bundle (src/launch/code-cache.ts): for an image,
// whose service cannot write there. A failure leaves a start that is slower.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const args = scripts.start.split(' node ').at(-1).split(' ');
/** Milliseconds: the threads write their caches three seconds after they have started. */
const LONG_ENOUGH = 5_000;

const service = spawn(process.execPath, args, {
  cwd: root,
  env: { ...process.env, HOST: '127.0.0.1', PORT: '0' },
  stdio: ['ignore', 2, 'pipe'],
});
service.stderr?.on('data', (chunk) => {
  if (/listening on/.test(String(chunk))) setTimeout(() => service.kill('SIGTERM'), LONG_ENOUGH);
});
