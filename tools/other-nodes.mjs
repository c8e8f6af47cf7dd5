// `npm run nodes`: what is built, on the supported versions of Node that are not the one that runs this: the help of every command
// of `parley`, the commands that a first hour needs, a call over a pipe and one over HTTP. With `--unit` the unit tests on each
// instead; with `--shared` as well each file on one of them, which follows from the commit. The programs are npm packages with a
// lockfile of their own (test/nodes), for x86-64 Linux.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
/** @type {{ scripts: { start: string } }} */
const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const programs = join(root, 'test/nodes/node_modules');
const commands = join(root, 'dist/bundle/cli.js');
/** Milliseconds that one command may take. */
const TIMEOUT = 60_000;
/** Bytes that the unit tests may say. */
const MAX_OUTPUT = 64 * 1_048_576;
const CALL = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'count_objects', arguments: { class_name: 'Album' } },
};

/** @returns {string[]} the executables of the other versions, oldest first */
function otherNodes() {
  if (!existsSync(programs)) return [];
  return readdirSync(programs)
    .filter((name) => /^node-\d+$/.test(name) && name !== `node-${process.versions.node.split('.')[0]}`)
    .sort((one, other) => Number(one.slice('node-'.length)) - Number(other.slice('node-'.length)))
    .map((name) => join(programs, name, 'bin/node'));
}

/**
 * @param {string} node
 * @param {string[]} args
 * @param {{ cwd: string, input?: string }} options
 */
function runParley(node, args, { cwd, input = '' }) {
  const { status, stdout, stderr } = spawnSync(node, [commands, ...args], {
    cwd,
    input,
    encoding: 'utf8',
    timeout: TIMEOUT,
  });
  return { ok: status === 0, stdout, said: `${stdout}${stderr}` };
}

/**
 * @param {string} node
 * @param {string} cwd
 * @returns {string[]} what is wrong with the help of commands
 */
function readHelp(node, cwd) {
  const options = { cwd, encoding: /** @type {const} */ ('utf8'), timeout: TIMEOUT };
  const { status, stdout, stderr } = spawnSync(node, [join(root, 'tools/every-help.mjs')], options);
  return status === 0 && stdout === 'ok' ? [] : [`${stdout}${stderr}`];
}

/**
 * Starts the demo as `npm start` does, with its flags for V8, asks it one question and ends it.
 * @param {string} node
 * @returns {Promise<string | null>} what is wrong, or null
 */
async function startOnce(node) {
  const args = own.scripts.start.split(' node ').at(-1)?.split(' ') ?? [];
  const child = spawn(node, args, {
    cwd: root,
    env: { ...process.env, HOST: '127.0.0.1', PORT: '0', MCP_API_KEY: 'other-nodes-key' },
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: TIMEOUT,
  });
  let log = '';
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const listening = new Promise((resolve) => {
    child.stderr.on('data', (chunk) => {
      log += String(chunk);
      const [origin] = /http:\/\/[\d.]+:\d+/.exec(/listening on.*/.exec(log)?.[0] ?? '') ?? [];
      if (origin) resolve(origin);
    });
    void ended.then(() => resolve(null));
  });
  const origin = await listening;
  if (origin === null) return `does not listen:\n${log}`;
  const response = await fetch(`${String(origin)}/mcp`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-MCP-API-Key': 'other-nodes-key' },
    body: JSON.stringify(CALL),
  });
  const answer = /** @type {unknown} */ (await response.json());
  child.kill('SIGTERM');
  const code = await ended;
  if (!hasResult(answer)) return `answers ${JSON.stringify(answer)}`;
  return code === 0 ? null : `ends with ${String(code)}:\n${log}`;
}

/** @param {unknown} answer */
const hasResult = (answer) => /"structuredContent":/.test(JSON.stringify(answer));

/**
 * @param {string} node
 * @returns {Promise<string[]>} what is wrong
 */
async function smoke(node) {
  const cwd = mkdtempSync(join(tmpdir(), 'parley-nodes-'));
  /** @type {string[]} */
  const faults = [];
  /** @param {string[]} args @param {{ input?: string, expected?: RegExp }} [options] */
  const expectRun = (args, { input, expected = /./ } = {}) => {
    const { ok, said } = runParley(node, args, { cwd, ...(input !== undefined && { input }) });
    if (!ok || !expected.test(said)) faults.push(`parley ${args.join(' ')}:\n${said}`);
  };
  try {
    faults.push(...readHelp(node, cwd));
    expectRun(['--version'], { expected: /^\d+\.\d+\.\d+/ });
    expectRun(['schema'], { expected: /"properties"/ });
    expectRun(['hash-key', '--generate']);
    expectRun(['tool', 'count_objects', '{"class_name":"Album"}'], { expected: /count/ });
    expectRun(['explain', 'count_objects', '{"class_name":"Album"}', '--agent', 'northside'], {
      expected: /Album/,
    });
    const demo = ['--config', join(root, 'parley.yaml')];
    expectRun(['policy', 'check', ...demo]);
    expectRun(['doctor', ...demo]);
    expectRun(['stdio'], { input: `${JSON.stringify(CALL)}\n`, expected: /structuredContent/ });
    const fault = await startOnce(node);
    if (fault !== null) faults.push(`npm start ${fault}`);
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
  return faults;
}

/**
 * @param {string} node
 * @param {string[]} options of Vitest
 * @returns {string[]} what is wrong
 */
function runUnitTests(node, options) {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const args = [vitest, 'run', '--project', 'unit', '--project', 'embedded-mongo', '--reporter=agent'];
  const run = spawnSync(node, [...args, ...options], { cwd: root, encoding: 'utf8', maxBuffer: MAX_OUTPUT });
  return run.status === 0 ? [] : [`unit tests:\n${run.stdout}${run.stderr}`];
}

/** @param {number} at of how many versions @param {number} count @returns {string[]} the option for one share of all files */
function shareOf(at, count) {
  const { stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' });
  const turn = Number.parseInt(stdout.slice(0, 6), 16) || 0;
  return [`--shard=${((at + turn) % count) + 1}/${count}`];
}

/**
 * @param {string} node
 * @param {string} what
 * @param {() => string[] | Promise<string[]>} check
 */
async function holdsOn(node, what, check) {
  const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim();
  const started = Date.now();
  const faults = await check();
  for (const fault of faults) console.log(`FAIL ${version} ${fault}`);
  const mark = faults.length === 0 ? 'ok  ' : 'FAIL';
  console.log(`${mark} ${what} on ${version} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  return faults.length === 0;
}

const nodes = otherNodes();
if (nodes.length === 0) {
  console.error('no other Node is installed: run `npm ci` in test/nodes (x86-64 Linux alone)');
  process.exit(process.platform === 'linux' && process.arch === 'x64' ? 1 : 0);
}
let failed = 0;
for (const [at, node] of nodes.entries()) {
  const options = process.argv.includes('--shared') ? shareOf(at, nodes.length) : [];
  const holds = process.argv.includes('--unit')
    ? await holdsOn(node, ['unit tests', ...options].join(' '), () => runUnitTests(node, options))
    : await holdsOn(node, 'commands', () => smoke(node));
  if (!holds) failed += 1;
}
process.exit(failed === 0 ? 0 : 1);
