// Makes a data file of the demo's seed, dist/seeds/HASH-DATABASE.data, which the embedded database reads in its own thread
// (libs/instance/src/package-files.ts). It is the file that `parley embedded --data` writes.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const seed = join(root, 'demo', 'seed.json');
const DATABASE = 'parley';

const hash = createHash('sha256').update(readFileSync(seed)).digest('hex');
const folder = join(root, 'dist', 'seeds');
mkdirSync(folder, { recursive: true });
const file = join(folder, `${hash}-${DATABASE}.data`);
const args = ['embedded', '--port', '0', '--database', DATABASE, '--seed', seed, '--data', file];
const database = spawn(process.execPath, [join(root, 'dist', 'bundle', 'cli.js'), ...args], {
  stdio: ['ignore', 2, 'pipe'],
});
let output = '';
database.stderr.on('data', (chunk) => {
  output += chunk;
  // Its end writes what is pending.
  if (/listening on/.test(output)) database.kill('SIGTERM');
});
database.once('exit', (code) => {
  if (code === 0) chmodSync(file, 0o644);
  else process.stderr.write(output);
  process.exitCode = code ?? 1;
});
