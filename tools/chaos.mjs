// Three replicas behind a plain round-robin proxy, one of them killed (-9) every few seconds, under mixed bounded load.
// Fails when a session is lost, an answer is missing after the client's retries, an approved write happens twice, or a task
// does not end. `--seconds N` (default 60), `--every N` seconds between two kills (default 4). `--processes`: three processes of one
// service (`server.processes`) instead, which starts each again by itself.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';
import { startRedisServer } from './redis-server.mjs';
import { startRoundRobin } from './round-robin.mjs';

const TASKS = 'io.modelcontextprotocol/tasks';
const root = fileURLToPath(new URL('..', import.meta.url));
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    every: { type: 'string', default: '4' },
    processes: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
const every = Number(values.every);

function launch(script, args, env, ready) {
  const child = spawn(process.execPath, [join(root, 'dist', 'bundle', script), ...args], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  return new Promise((resolve, reject) => {
    let told = '';
    child.told = () => told;
    child.stderr.on('data', (chunk) => {
      told = (told + chunk).slice(-4000);
      const found = ready.exec(told)?.[1];
      if (found) resolve({ child, found });
    });
    child.once('exit', (code) => reject(new Error(`a process ended with ${code}:\n${told}`)));
  });
}

const startReplica = async (shared) => {
  const env = {
    PARLEY_CONFIG: join(root, 'test', 'chaos', 'parley.yaml'),
    PORT: '0',
    PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
    PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
    ...shared,
  };
  const { child, found } = await launch('main.js', [], env, /Parley listening on \S+:(\d+)\//);
  return { child, hostname: '127.0.0.1', port: Number(found) };
};

if (build({ ifNeeded: true }) !== 0) process.exit(1);
const redis = await startRedisServer();
const seed = join(root, 'test', 'chaos', 'seed.json');
const database = await launch(
  'cli.js',
  ['embedded', '--port', '0', '--seed', seed],
  {},
  /listening on (mongodb\S+)/,
);
const shared = { REDIS_URL: redis.url, MONGODB_URI: database.found };
const target = values.processes ? await startProcesses() : await startReplicas();
const { url } = target;

/** Three replicas behind a proxy; one that is killed is started again. */
async function startReplicas() {
  const replicas = await Promise.all([1, 2, 3].map(() => startReplica(shared)));
  const proxy = await startRoundRobin(replicas);
  return {
    url: `http://127.0.0.1:${proxy.port}/mcp`,
    kill: async (turn) => {
      const index = turn % replicas.length;
      replicas[index].child.kill('SIGKILL');
      replicas[index] = await startReplica(shared);
    },
    close: () => {
      proxy.close();
      for (const { child } of replicas) child.kill('SIGKILL');
    },
  };
}

/** Three processes of one service; which runs at which place is what its log says. */
async function startProcesses() {
  const folder = join(root, 'test', 'chaos');
  const file = join(mkdtempSync(join(tmpdir(), 'parley-chaos-')), 'parley.yaml');
  const text = readFileSync(join(folder, 'parley.yaml'), 'utf8').replace(
    './plugin.mjs',
    join(folder, 'plugin.mjs'),
  );
  writeFileSync(file, `server: { processes: 3 }\n${text}`);
  const { child, hostname, port } = await startReplica({ ...shared, PARLEY_CONFIG: file });
  const pids = new Map();
  const read = (told) => {
    for (const [, number, pid] of String(told).matchAll(/process (\d) \(pid (\d+)\) serves/g))
      pids.set(number, pid);
  };
  read(child.told());
  child.stderr.on('data', read);
  return {
    url: `http://${hostname}:${port}/mcp`,
    kill: async (turn) => process.kill(Number(pids.get(String((turn % 3) + 1))), 'SIGKILL'),
    close: () => child.kill('SIGTERM'),
  };
}

const seen = { calls: 0, retries: 0, kills: 0, reads: 0, tasks: 0, writes: 0, unsure: 0 };
const faults = [];
let nextId = 1;
let running = true;

/** Sends until an answer comes; a replica that died in the middle looks like a broken connection or a 502. */
async function send(method, params, headers) {
  for (let attempt = 0; attempt < 40; attempt += 1) {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-MCP-API-Key': 'chaos', ...headers },
        body: JSON.stringify({ jsonrpc: '2.0', id: nextId++, method, params }),
      });
      const text = await response.text();
      if (response.status === 404 && /Session/.test(text)) faults.push(`a session was lost: ${text}`);
      if (response.status < 500) {
        seen.calls += 1;
        return { ...JSON.parse(text), session: response.headers.get('mcp-session-id') };
      }
    } catch {
      // Sent again.
    }
    seen.retries += 1;
    await pause(100);
  }
  faults.push(`no answer to ${method}`);
  return {};
}

const modern = (method, params, extensions = {}) => {
  const named = params.name ?? params.taskId;
  const capabilities = { elicitation: { form: {} }, extensions };
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
  return send(
    method,
    { ...params, _meta },
    { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method, ...(named && { 'Mcp-Name': named }) },
  );
};

async function sessions() {
  const hello = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'chaos', version: '1' },
  };
  const { session } = await send('initialize', hello, {});
  const headers = { 'Mcp-Session-Id': session, 'MCP-Protocol-Version': '2025-11-25' };
  while (running) {
    const call = { name: 'get_object', arguments: { class_name: 'Item', object_id: 'first' } };
    const { result, error } = await send('tools/call', call, headers);
    if (result?.structuredContent?.object?.title === 'first') seen.reads += 1;
    else faults.push(`a read was answered ${JSON.stringify(result ?? error).slice(0, 200)}`);
    await pause(20);
  }
}

async function tasks() {
  while (running) {
    const call = { name: 'patient_count', arguments: { milliseconds: 1500 } };
    const { result } = await modern('tools/call', call, { [TASKS]: {} });
    if (result?.resultType !== 'task') {
      faults.push(`no task: ${JSON.stringify({ result }).slice(0, 200)}`);
      continue;
    }
    const deadline = Date.now() + 60_000;
    let state = result;
    while (state.status === 'working' && Date.now() < deadline) {
      await pause(200);
      state = (await modern('tasks/get', { taskId: result.taskId }, { [TASKS]: {} })).result ?? state;
    }
    if (state.status === 'completed' && !state.result.isError) seen.tasks += 1;
    else faults.push(`a task ended as ${JSON.stringify(state).slice(0, 300)}`);
  }
}

const written = new Map();
async function writes(worker) {
  for (let n = 0; running; n += 1) {
    const title = `w${worker}-${n}`;
    const call = { name: 'create_object', arguments: { class_name: 'Item', fields: { title, rank: n } } };
    const { result: asked, error } = await modern('tools/call', call);
    const [key] = Object.keys(asked?.inputRequests ?? {});
    if (!key) {
      faults.push(`a write was not asked about: ${JSON.stringify({ asked, error }).slice(0, 200)}`);
      continue;
    }
    const inputResponses = { [key]: { action: 'accept', content: { approve: true } } };
    const again = { ...call, inputResponses, requestState: asked.requestState };
    const { result } = await modern('tools/call', again);
    // A decision that was used up by an answer which never arrived is refused: the write happened, or it did not.
    if (result?.isError === false) seen.writes += 1;
    else seen.unsure += 1;
    written.set(title, result?.isError === false);
    await pause(50);
  }
}

async function killing() {
  for (let turn = 0; running; turn += 1) {
    await pause(every * 1000);
    if (!running) return;
    await target.kill(turn);
    seen.kills += 1;
  }
}

const work = [sessions(), sessions(), tasks(), tasks(), writes(1), writes(2), killing()];
await pause(seconds * 1000);
running = false;
await Promise.all(work);

for (const [title, sure] of written) {
  const call = { name: 'count_objects', arguments: { class_name: 'Item', where: { title } } };
  const { result } = await modern('tools/call', call);
  const count = result?.structuredContent?.count;
  if (count !== 1 && (sure || count !== 0)) faults.push(`the write ${title} happened ${count} times`);
}

target.close();
database.child.kill('SIGKILL');
await redis.close();
console.log(JSON.stringify(seen));
for (const fault of faults.slice(0, 20)) console.log(`FAULT ${fault}`);
console.log(faults.length === 0 ? 'ok' : `${faults.length} faults`);
process.exitCode = faults.length === 0 ? 0 : 1;
