// One principal floods a service with every method, stream and store that there is, with the limits that are shipped. The others are
// measured in quiet and loud rounds that take turns, so that the machine is the same for both.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { startRedisServer } from '../../tools/redis-server.mjs';
import { median, request } from '../bench/load.mjs';
import { folderWith, SERVICE, start } from '../bench/processes.mjs';
import { startDatabase } from '../bench/works.mjs';
import { ModernClient } from './support/modern-client.mjs';

export const part = {
  title: 'One principal floods, the others stay fast',
  minutes: 4,
  brief: 0.15,
  alone: true,
};

const FLOOD = fileURLToPath(new URL('support/flood.mjs', import.meta.url));
const PLUGIN = fileURLToPath(new URL('support/slow-count.plugin.mjs', import.meta.url));
const NEIGHBOURS = ['ann', 'bob', 'cid'];
/** Seconds of one quiet or loud round, at most. */
const ROUND = 8;
/** Times the quiet value that p95 may be while somebody floods. */
const PROMISED = 2;
/** In a run of seconds, on a machine that does other work: only a standstill counts. */
const GENEROUS = 100;

const SEED = {
  schemas: ['Item', 'News', 'Fixed'].map((className) => ({
    className,
    fields: { title: { type: 'String' } },
  })),
  objects: {
    Item: [{ objectId: 'first', title: 'first' }],
    News: [{ objectId: 'first', title: 'first' }],
    Fixed: Array.from({ length: 300 }, (_, at) => ({ objectId: `f${at}`, title: `fixed ${at}` })),
  },
};

const configuration = ({ redis, mongodb }) =>
  stringify({
    server: { port: 0 },
    database: { uri: mongodb, name: 'parley' },
    redis: { url: redis },
    plugins: [PLUGIN],
    agents: {
      greedy: { permissions: 'write' },
      neighbour: { rateLimit: 1_000_000 },
    },
    auth: [
      { apiKey: 'key-of-greedy', agent: 'greedy' },
      ...NEIGHBOURS.map((name) => ({ apiKey: `key-of-${name}`, agent: 'neighbour' })),
    ],
    approvals: { mode: 'desk', approvers: ['neighbour'] },
    policy: {
      unlistedClasses: 'allow',
      requireApprovalFor: ['write'],
      suppressMasterKeyWarning: true,
      classes: Object.fromEntries(['Item', 'News', 'Fixed'].map((name) => [name, { fields: ['title'] }])),
    },
  });

const tool = (name, args) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } });
const CALLS = [
  tool('query_class', { class_name: 'Fixed', limit: 10 }),
  tool('get_object', { class_name: 'Item', object_id: 'first' }),
  tool('count_objects', { class_name: 'Fixed' }),
];

const percentile = (values, share) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ??
  Infinity;

/** Small calls of all neighbours for some seconds, and a stream of each at the end. @returns milliseconds of each that was answered well */
async function round(url, seconds, { agent, refused }) {
  const ends = performance.now() + seconds * 1000;
  const waits = [];
  const neighbour = async (name) => {
    for (let turn = 0; performance.now() < ends; turn += 1) {
      const began = performance.now();
      const answer = await request(agent, url, CALLS[turn % CALLS.length], {
        'x-mcp-api-key': `key-of-${name}`,
      }).catch((error) => ({ status: 0, text: error.message }));
      if (answer.status === 200 && answer.text.includes('"isError":false'))
        waits.push(performance.now() - began);
      else refused.push(`HTTP ${answer.status} ${answer.text.slice(0, 200)}`);
      await pause(15);
    }
    const stream = await new ModernClient(url, { 'X-MCP-API-Key': `key-of-${name}` }).listen({
      toolsListChanged: true,
    });
    if (!stream.isOpen) refused.push(`no stream: HTTP ${stream.status} ${stream.refusal}`);
    stream.close();
  };
  await Promise.all(NEIGHBOURS.map(neighbour));
  return waits;
}

async function begin() {
  const redis = await startRedisServer();
  const folder = folderWith({ 'seed.json': JSON.stringify(SEED) });
  const database = await startDatabase({ seed: join(folder, 'seed.json'), clock: false });
  const service = await start(SERVICE, {
    cwd: folderWith({ 'parley.yaml': configuration({ redis: redis.url, mongodb: database.url }) }),
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
    ready: /Parley listening on (\S+)/,
  });
  const flood = fork(FLOOD, [service.url, JSON.stringify({ 'X-MCP-API-Key': 'key-of-greedy' })]);
  return {
    service,
    flood,
    end: async () => {
      flood.disconnect();
      await service.stop();
      await database.stop();
      await redis.close();
    },
  };
}

export async function run({ minutes, log, signal }) {
  const { service, flood, end } = await begin();
  const { url } = service;
  const agent = new http.Agent({ keepAlive: true });
  const refused = [];
  const losses = [];
  const answers = {};
  const seconds = minutes * 60;
  const pairs = Math.max(2, Math.round(seconds / (2 * ROUND)));
  const each = Math.min(ROUND, seconds / (2 * pairs));
  const lines = { quiet: [], loud: [] };
  const began = performance.now();
  const measured = async (kind) => {
    const before = await service.cpuSeconds();
    const waits = await round(url, each, { agent, refused });
    const cpu = (await service.cpuSeconds()) - before;
    const p95 = percentile(waits, 0.95);
    lines[kind].push([Math.round((performance.now() - began) / 1000), Number(p95.toFixed(2))]);
    return { p95, p50: percentile(waits, 0.5), calls: waits.length, cpu };
  };
  // Code and connections are warm before anything is compared.
  await round(url, Math.min(5, each), { agent, refused });
  const rounds = [];
  for (let at = 0; at < pairs && !signal.aborted; at += 1) {
    const quiet = await measured('quiet');
    flood.send('loud');
    await pause(Math.min(1_000, each * 250));
    const loud = await measured('loud');
    const told = once(flood, 'message');
    flood.send('quiet');
    const [{ answers: some, unclear }] = await told;
    for (const [what, count] of Object.entries(some)) answers[what] = (answers[what] ?? 0) + count;
    for (const one of unclear) losses.push(`the flood got an unclear answer: ${one}`);
    rounds.push({ quiet, loud, ratio: loud.p95 / quiet.p95 });
    log(
      `p95 quiet ${quiet.p95.toFixed(1)} ms, loud ${loud.p95.toFixed(1)} ms: ${(loud.p95 / quiet.p95).toFixed(2)}`,
    );
    // What the flood left behind ends before the next quiet round.
    await pause(Math.min(1_000, each * 250));
  }
  agent.destroy();
  await end();
  if (refused.length > 0)
    losses.push(`${refused.length} calls of the others were refused, first: ${refused[0]}`);
  const middle = (of) => Number(median(rounds.map(of)).toFixed(2));
  const isLong = minutes >= 1;
  const flooded = Object.values(answers).reduce((sum, count) => sum + count, 0);
  return {
    losses,
    figures: [
      {
        name: 'p95 of the others, loud against quiet',
        value: middle(({ ratio }) => ratio),
        unit: 'times',
        atMost: isLong ? PROMISED : GENEROUS,
      },
      { name: 'p95, quiet', value: middle(({ quiet }) => quiet.p95), unit: 'ms' },
      { name: 'p95, loud', value: middle(({ loud }) => loud.p95), unit: 'ms' },
      { name: 'median, quiet', value: middle(({ quiet }) => quiet.p50), unit: 'ms' },
      { name: 'median, loud', value: middle(({ loud }) => loud.p50), unit: 'ms' },
      {
        name: 'CPU of the service while the flood is on',
        value: middle(({ loud }) => (loud.cpu / each) * 100),
        unit: '% of a core',
      },
      { name: 'requests of the flood', value: flooded, unit: '', atLeast: 1 },
      {
        name: 'calls of the others',
        value: rounds.reduce((sum, { quiet, loud }) => sum + quiet.calls + loud.calls, 0),
        unit: '',
        atLeast: 1,
      },
    ],
    series: [
      {
        title: 'p95 of the others',
        unit: 'ms',
        lines: Object.entries(lines).map(([name, points]) => ({ name, points })),
      },
    ],
    notes: [
      ...(isLong
        ? []
        : [`In a run of less than a minute p95 is judged at ${GENEROUS} times, not at ${PROMISED}.`]),
      ...Object.entries(answers).map(([what, count]) => `${count} × ${what}`),
    ],
  };
}
