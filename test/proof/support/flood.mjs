// One principal that does everything at once, in a process of its own so that it delays nobody's measurement. Its parent says when:
// `loud` starts it, `quiet` ends it and is answered with what it was answered.
import { setTimeout as pause } from 'node:timers/promises';
import { ModernClient, SessionClient, TASKS } from './modern-client.mjs';

const [, , url, credentials] = process.argv;
const headers = JSON.parse(credentials);
const { origin } = new URL(url);
const modern = new ModernClient(url, headers);
const LARGE = Array.from({ length: 20_000 }, (_, at) => `value ${at} of a long list of values`);
/** The embedded database does one thing at a time, which MongoDB does not: a longer pipeline would measure that. */
const SLOW = [
  { $limit: 50 },
  { $project: { i: { $range: [0, 20] } } },
  { $unwind: '$i' },
  { $group: { _id: '$i', total: { $sum: 1 } } },
  { $limit: 1 },
];
const raw = (body, more) =>
  fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json', ...more }, body });
let count = 0;

async function openedBriefly(stream) {
  return openedFor(300, stream);
}

async function openedFor(milliseconds, stream) {
  await pause(milliseconds);
  stream.close();
  return { status: stream.status, text: stream.refusal ?? '' };
}

async function session() {
  const client = new SessionClient(url, headers);
  await client.initialize();
  return client;
}

/**
 * Every method, stream and store, each with as many callers as it says.
 * @type {Record<string, [callers: number, act: () => Promise<any>]>}
 */
const FLOODS = {
  queries: [4, () => modern.call('query_class', { class_name: 'Fixed', limit: 100 })],
  pipelines: [4, () => modern.call('aggregate', { class_name: 'Fixed', pipeline: SLOW })],
  'slow tools': [4, () => modern.call('slow_count', { class_name: 'Fixed', milliseconds: 500 })],
  lists: [2, () => modern.ask(['tools/list', 'resources/list', 'prompts/list'][(count += 1) % 3])],
  resources: [2, () => modern.ask('resources/read', { uri: 'parse://Fixed/samples' })],
  tasks: [
    3,
    () =>
      modern.call('slow_count', { class_name: 'Fixed', milliseconds: 900 }, { extensions: { [TASKS]: {} } }),
  ],
  approvals: [
    3,
    () => modern.call('create_object', { class_name: 'Item', fields: { title: `flood ${(count += 1)}` } }),
  ],
  sessions: [2, async () => (await session()).ask('ping')],
  subscriptions: [
    2,
    async () => {
      const client = await session();
      for (const name of ['Item', 'Fixed', 'News'])
        await client.ask('resources/subscribe', { uri: `parse://${name}/count` });
      return openedBriefly(await client.listen());
    },
  ],
  streams: [
    3,
    async () =>
      openedBriefly(
        await modern.listen({ resourceSubscriptions: ['parse://News/count'], toolsListChanged: true }),
      ),
  ],
  // More than its share of the places, for as long as a round.
  'streams that stay': [40, async () => openedFor(5_000, await modern.listen({ toolsListChanged: true }))],
  exports: [
    2,
    async () => {
      const ordered = await modern.call('export_data', {
        class_name: 'Fixed',
        delivery: 'resource',
        format: 'csv',
        columns: ['title'],
      });
      const path = ordered.result?.structuredContent?.path;
      if (!path) return ordered;
      const file = await fetch(new URL(path, origin), { headers });
      return { status: file.status, text: await file.text() };
    },
  ],
  'wrong keys': [
    2,
    () => new ModernClient(url, { 'X-MCP-API-Key': `wrong ${(count += 1)}` }).ask('tools/list'),
  ],
  'wrong tokens': [
    2,
    () =>
      new ModernClient(url, { Authorization: `Bearer ${'x'.repeat(800)}.y.${(count += 1)}` }).ask(
        'tools/list',
      ),
  ],
  'unknown tools': [2, () => modern.call(`no_tool_${(count += 1)}`, {})],
  'unknown methods': [1, () => modern.ask(`nothing/${(count += 1)}`)],
  'large arguments': [
    2,
    () => modern.call('query_class', { class_name: 'Fixed', where: { title: { $in: LARGE } } }),
  ],
  'what is no JSON': [
    1,
    async () => {
      const answer = await raw('{"jsonrpc":'.repeat(2_000), headers);
      return { status: answer.status, text: await answer.text() };
    },
  ],
  cancellations: [1, () => modern.ask('notifications/cancelled', { requestId: (count += 1) })],
};

let loud = false;
let callers = [];
let answers = {};
const unclear = [];

function kindOf({ status, error, result, text = '' }) {
  if (error?.message === 'Internal error' || status === 500) unclear.push(text.slice(0, 300));
  const code = result?._meta?.['parse.error_code'];
  if (code === 'internal_error') unclear.push(text.slice(0, 300));
  return code ?? (error ? String(error.code) : status < 300 ? 'ok' : `HTTP ${status}`);
}

async function caller(name, act) {
  while (loud) {
    const kind = await act().then(kindOf, () => 'connection cut');
    const key = `${name}: ${kind}`;
    answers[key] = (answers[key] ?? 0) + 1;
    // A client that ignores the wait that a refusal states, yet does not spin on its own machine.
    await pause(5);
  }
}

process.on('message', (message) => void obey(message));
async function obey(message) {
  if (message === 'loud') {
    loud = true;
    callers = Object.entries(FLOODS).flatMap(([name, [callersOf, act]]) =>
      Array.from({ length: callersOf }, () => caller(name, act)),
    );
  } else if (message === 'quiet') {
    loud = false;
    await Promise.race([Promise.all(callers), pause(15_000)]);
    process.send?.({ answers, unclear: unclear.splice(0) });
    answers = {};
  }
}
process.on('disconnect', () => process.exit(0));
