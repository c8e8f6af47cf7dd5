// `npm run bench -- changes`: what change sets cost, each against the same write without them in the same run: a proposed write against a
// direct one, a recorded write against one that is not, and a set of 500 rows from its approval until it is applied.
import http from 'node:http';
import { parseArgs } from 'node:util';
import { MongoClient } from 'mongodb';
import { median, request } from './load.mjs';
import { call, startDatabase, startParley } from './works.mjs';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '40' }, prof: { type: 'string' } },
});
const ROUNDS = Number(values.rounds);
/** Rounds before the first that counts. */
const WARM_UP = 30;
/** Writes of each way in a round, and of the set that is applied. */
const WRITES = 25;
const ROWS = 500;

/** @type {Record<string, object>} */
const agents = {
  direct: { permissions: 'admin', rateLimit: 1_000_000_000 },
  proposed: { permissions: 'admin', writes: 'proposed', rateLimit: 1_000_000_000 },
  chief: { permissions: 'admin', rateLimit: 1_000_000_000 },
};
const options = {
  agents,
  auth: Object.keys(agents).map((agent) => ({ apiKey: `${agent}-key`, agent })),
  approvals: { mode: 'desk', approvers: ['chief'], expiry: 60 },
  server: { stateKey: 'a key of thirty-two characters, or more' },
};
const env = {
  PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
  PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
};

const database = await startDatabase();
const flags = values.prof ? ['--cpu-prof', `--cpu-prof-dir=${values.prof}`] : [];
const startWith = (record) =>
  startParley({ uri: database.url, ...options, changes: { record } }, { env, flags });
const [plain, recorded] = [await startWith('none'), await startWith('all')];

const connection = new http.Agent({ keepAlive: true, maxSockets: 2 });
const as = (agent) => ({ 'x-mcp-api-key': `${agent}-key` });
async function send(service, agent, name, args) {
  const { text } = await request(connection, service.url, call(name, args), as(agent));
  const { result } = JSON.parse(text);
  if (!result || result.isError) throw new Error(`${name}: ${text.slice(0, 500)}`);
  return result.structuredContent;
}

const client = await MongoClient.connect(database.url);
const found = await client
  .db('parley')
  .collection('Song')
  .find({}, { projection: { _id: 1 }, limit: ROWS })
  .toArray();
await client.close();
const ids = found.map(({ _id }) => String(_id));

let count = 0;
/** Milliseconds of each of some writes, one after the other. */
async function write(service, agent, times = WRITES) {
  const spent = [];
  for (let at = 0; at < times; at += 1) {
    const args = {
      class_name: 'Song',
      object_id: ids[at % ids.length],
      fields: { trackNumber: (count += 1) },
    };
    const began = performance.now();
    await send(service, agent, 'update_object', args);
    spent.push(performance.now() - began);
  }
  return spent;
}

async function discard() {
  const {
    change_sets: [set],
  } = await send(plain, 'proposed', 'list_changes', { limit: 1 });
  await send(plain, 'proposed', 'discard_changes', { change_set: set.change_set });
}

/** The median of what a write costs against the other, both one after the other in each round. */
async function against(name, other, own, target, after = async () => {}) {
  const ratios = [];
  /** @type {number[][]} */
  const spent = [[], []];
  for (let round = -WARM_UP; round < ROUNDS; round += 1) {
    const medians = [median(await write(...other)), median(await write(...own))];
    await after();
    if (round < 0) continue;
    ratios.push(medians[1] / medians[0]);
    for (const side of [0, 1]) spent[side].push(medians[side]);
  }
  const ms = spent.map((of) => median(of).toFixed(2));
  console.log(`${name}: ${median(ratios).toFixed(2)} (${ms[1]} / ${ms[0]} ms), at most ${target}`);
}

await against(
  'a proposed write against a direct one',
  [plain, 'direct'],
  [plain, 'proposed'],
  '1.3',
  discard,
);
await against(
  'a write that is recorded against one that is not',
  [plain, 'direct'],
  [recorded, 'direct'],
  '1.5, as three round trips are to two',
);

/** Milliseconds of some work. */
async function timed(name, work, target) {
  const began = performance.now();
  const result = await work();
  console.log(`${name}: ${(performance.now() - began).toFixed(0)} ms${target}`);
  return result;
}

const desk = async (path, method, body = '') => {
  const { text } = await request(connection, new URL(path, plain.url), body, as('chief'), method);
  return JSON.parse(text);
};
async function firstCase() {
  for (;;) {
    const { approvals } = await desk('/approvals', 'GET');
    if (approvals.length > 0) return approvals[0].id;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

await timed(`${ROWS} rows proposed`, () => write(plain, 'proposed', ROWS), '');
const submitted = send(plain, 'proposed', 'submit_changes', { title: 'All', reason: 'to measure' });
const id = await timed(`${ROWS} rows submitted`, firstCase, '');
const shown = await timed(`${ROWS} rows shown to an approver`, () => desk(`/approvals/${id}`, 'GET'), '');
const decision = JSON.stringify({ decision: 'approve', digest: shown.digest });
await timed(
  `${ROWS} rows applied, from the decision on`,
  async () => {
    await desk(`/approvals/${id}`, 'POST', decision);
    await submitted;
  },
  ', at most 2000 ms',
);
connection.destroy();
await Promise.all([plain, recorded, database].map((one) => one.stop()));
