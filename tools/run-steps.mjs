// Runs steps beside each other as far as their `after` lets them, on as many lanes as there are cores. What a step says is printed
// when it has ended, in one piece. One that does not end is ended, as a failure.
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** Milliseconds that a step may take: several times what the slowest but the tests needs. */
const LIMIT = 15 * 60_000;
const SIGNALS = /** @type {const} */ (['SIGINT', 'SIGTERM']);

/**
 * @typedef {{ name: string, command: string, args: string[], after?: string[], behind?: string[], waits?: boolean, live?: boolean, limit?: number }} Step
 * `after`: does not run when one of these failed; `behind`: runs once these have ended, however they did; `waits`: mostly for time to
 * pass, so it takes no lane; `live`: what it says is printed while it runs; `limit`: milliseconds that it may take, a quarter of an hour where none is given
 */

/**
 * @param {Step[]} steps those that come first take the free lanes
 * @param {{ cwd: string, env?: NodeJS.ProcessEnv }} options
 * @returns {Promise<string[]>} names of those that failed or could not run
 */
export async function runSteps(steps, { cwd, env = process.env }) {
  const ended = new Map();
  const running = new Map();
  const free = () => availableParallelism() - [...running.keys()].filter((step) => !step.waits).length;
  const left = new Set(steps);
  while (left.size > 0 || running.size > 0) {
    for (const step of left) {
      const { name, after = [], behind = [], waits = false } = step;
      if (after.some((earlier) => ended.get(earlier) === false)) {
        console.log(`FAIL ${name} (not run)`);
        ended.set(name, false);
        left.delete(step);
      } else if ([...after, ...behind].every((earlier) => ended.has(earlier)) && (waits || free() > 0)) {
        left.delete(step);
        running.set(step, runStep(step, cwd, env));
      }
    }
    if (running.size === 0) {
      const known = new Set(steps.map(({ name }) => name));
      const lost = [...left].find(({ after = [], behind = [] }) =>
        [...after, ...behind].some((earlier) => !known.has(earlier)),
      );
      if (lost) throw new Error(`step '${lost.name}' waits for one that is not there`);
      continue;
    }
    const { step, ok } = await Promise.race(running.values());
    running.delete(step);
    ended.set(step.name, ok);
  }
  return [...ended].filter(([, ok]) => !ok).map(([name]) => name);
}

/**
 * @param {Step} step
 * @param {string} cwd
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<{ step: Step, ok: boolean }>}
 */
function runStep(step, cwd, env) {
  const { limit = LIMIT } = step;
  const started = Date.now();
  /** @type {import('node:child_process').StdioOptions} */
  const stdio = step.live ? 'inherit' : ['ignore', 'pipe', 'pipe'];
  // A group of its own, so that all that it started ends with it.
  const child = spawn(step.command, step.args, { cwd, env, stdio, detached: true });
  const killGroup = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // Nothing of it runs any more.
    }
  };
  const interrupt = () => {
    killGroup();
    process.exit(1);
  };
  for (const signal of SIGNALS) process.once(signal, interrupt);
  /** @type {Buffer[]} */
  const said = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => said.push(chunk));
  const timer = setTimeout(() => {
    said.push(Buffer.from(`did not end within ${limit / 1000} s\n`));
    killGroup();
  }, limit);
  return new Promise((resolve) => {
    /** @param {boolean} ok */
    const end = (ok) => {
      clearTimeout(timer);
      for (const signal of SIGNALS) process.off(signal, interrupt);
      process.stdout.write(Buffer.concat(said));
      console.log(`${ok ? 'ok  ' : 'FAIL'} ${step.name} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
      resolve({ step, ok });
    };
    // Said with the step, which ends with `close` even when it never began.
    child.once('error', (error) => said.push(Buffer.from(`${error.message}\n`)));
    child.once('exit', killGroup);
    child.once('close', (status) => end(status === 0));
  });
}
