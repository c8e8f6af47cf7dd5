import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
/** How `npm start` starts the service: what is measured is what runs. */
export const SERVICE = scripts.start
  .split(' && node ')[1]
  .split(' ')
  .map((part) => (part.endsWith('.js') ? join(root, part) : part));
const children = new Set();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** Starts a node process and waits for a line on stderr or stdout that matches; resolves to its first group. */
export async function start(args, { env = {}, cwd = root, ready }) {
  const began = performance.now();
  const child = spawn(process.execPath, args, {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.add(child);
  const match = await new Promise((resolve, reject) => {
    let text = '';
    const listen = (chunk) => {
      text += chunk;
      const found = ready.exec(text);
      if (found) resolve(found[1]);
    };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    child.once('exit', (code) => reject(new Error(`ended with ${code}: ${text}`)));
  });
  return {
    url: match,
    pid: child.pid,
    startedIn: performance.now() - began,
    stop: () =>
      new Promise((resolve) => {
        children.delete(child);
        child.removeAllListeners('exit');
        child.once('exit', resolve);
        child.kill('SIGTERM');
      }),
  };
}

/** Writes files into a new temporary folder. */
export function folderWith(files) {
  const folder = mkdtempSync(join(tmpdir(), 'parley-bench-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

const TICKS_PER_SECOND = 100;

/** CPU seconds (user and system) a process has used so far. */
export function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

export function residentMegabytes(pid) {
  const line = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line[1]) / 1024;
}
