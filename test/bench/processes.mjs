/** @import { Readable } from 'node:stream' */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
/** How `npm start` starts the service: what is measured is what runs. */
export const SERVICE = scripts.start
  .split(' && exec node ')[1]
  .split(' ')
  .map((part) => (part.endsWith('.js') ? join(root, part) : part));
const children = new Set();
const folders = [];
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

// A signal ends Node without 'exit'; a proof that winds up by itself listens too.
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM']))
  process.once(signal, () => {
    if (process.listenerCount(signal) === 0) process.exit(128 + constants.signals[signal]);
  });

const CLOCK = fileURLToPath(new URL('cpu-clock.cjs', import.meta.url));

/**
 * Starts a node process and waits for a line on stderr or stdout that matches; resolves to its first group.
 * @param {string[]} args
 * @param {{ env?: Record<string, string>, cwd?: string, ready: RegExp, clock?: boolean, stdin?: 'ignore' | 'pipe' }} how
 *   `clock: false`: without what measures its CPU, for measuring the start itself
 */
export async function start(args, how) {
  const { env = {}, cwd = root, ready, clock = true, stdin = 'ignore' } = how;
  const began = performance.now();
  const child = /** @type {import('node:child_process').ChildProcessByStdio<null, Readable, Readable>} */ (
    spawn(process.execPath, clock ? ['-r', CLOCK, ...args] : args, {
      cwd,
      env: { PATH: process.env.PATH, ...env },
      stdio: [stdin, 'pipe', 'pipe', clock ? 'ipc' : 'ignore'],
    })
  );
  children.add(child);
  const ended = new Promise((resolve) => child.once('close', resolve));
  const match = await new Promise((resolve, reject) => {
    let text = '';
    const listen = (chunk) => {
      text += chunk;
      const found = ready.exec(text);
      if (!found) return;
      // What it logs from now on is read and forgotten.
      for (const stream of [child.stdout, child.stderr]) stream.off('data', listen).resume();
      resolve(found[1]);
    };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    child.once('exit', (code) => reject(new Error(`ended with ${code}: ${text}`)));
  });
  /** Answer of what was loaded into the process before its program; one question at a time. */
  const ask = (question) =>
    new Promise((resolve, reject) => {
      const ended = () => reject(new Error('the process has ended'));
      child.once('exit', ended);
      child.once('message', (answer) => {
        child.off('exit', ended);
        resolve(answer);
      });
      child.send(question);
    });
  return {
    url: match,
    pid: child.pid,
    ask,
    /** CPU seconds (user and system) that the process has used so far. */
    cpuSeconds: async () => (await ask('cpu')).cpu / 1e6,
    /** What is alive and resident, in bytes; after a collection of garbage where it was started with `--expose-gc`. */
    memory: () => ask('memory'),
    startedIn: performance.now() - began,
    ended,
    /** @param {NodeJS.Signals} name */
    signal: (name) => child.kill(name),
    /** @param {NodeJS.Signals} [signal] @returns when it has ended, also where it had before */
    stop: (signal = 'SIGTERM') => {
      children.delete(child);
      child.removeAllListeners('exit');
      child.kill(signal);
      return ended;
    },
  };
}

/** Writes files into a new temporary folder, which is gone with this process. */
export function folderWith(files) {
  const folder = mkdtempSync(join(tmpdir(), 'parley-bench-'));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

export function residentMegabytes(pid) {
  const line = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  if (!line) throw new Error(`process ${pid} says no VmRSS`);
  return Number(line[1]) / 1024;
}
