import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { stringify } from 'yaml';
import { listed, listingRows } from './listing.mjs';
import { compare, once } from './load.mjs';
import { folderWith, residentMegabytes, root, SERVICE, start } from './processes.mjs';

const READY = /Parley listening on (\S+)/;
const key = 'bench-key';
const headers = { 'x-mcp-api-key': key };
const rows = [];
const note = (work, value, target, met) =>
  rows.push({ work, value, target, met: met === null ? '' : met ? 'yes' : 'NO' });

const call = (name, args) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } });

function configuration(classes, uri) {
  const declared = Object.fromEntries(
    Array.from({ length: classes }, (_, index) => [
      `Made${index}`,
      { fields: ['name'], tenantScope: { field: 'orgId' } },
    ]),
  );
  return stringify({
    server: { port: 0, requestRateLimit: { limit: 1_000_000_000, window: 60 }, maxRunningCalls: null },
    database: { uri, name: 'parley' },
    agents: {
      bench: { tenantId: 'northside', rateLimit: 1_000_000_000 },
      lean: { tools: { profile: 'lean' }, rateLimit: 1_000_000_000 },
      clerk: { tenantId: 'northside', identity: { user: 'uNorthClk1' }, rateLimit: 1_000_000_000 },
    },
    auth: [
      { apiKey: key, agent: 'bench' },
      { apiKey: 'lean-key', agent: 'lean' },
      { apiKey: 'clerk-key', agent: 'clerk' },
    ],
    policy: {
      suppressMasterKeyWarning: true,
      classes: {
        ...declared,
        Listing: { fields: ['sku', 'format', 'price', 'stock'], tenantScope: { field: 'orgId' } },
      },
    },
  });
}

const parley = (classes, uri) =>
  start(SERVICE, {
    cwd: folderWith({ 'parley.yaml': configuration(classes, uri) }),
    ready: READY,
  });

async function toolsList(service) {
  for (const { work, value, target, met } of await listingRows(service, headers))
    note(work, value, target, met);
}

async function queryClass(service, uri) {
  const bare = await start([join(root, 'test/bench/bare-server.mjs')], {
    env: { MONGODB_URI: uri },
    ready: /on (\S+)/,
  });
  const body = call('query_class', { class_name: 'Listing', where: { format: 'vinyl' }, limit: 10 });
  const bareBody = call('query_class', { where: { format: 'vinyl', orgId: 'northside' }, limit: 10 });
  const [own, base] = await compare(
    [
      { ...service, body, headers },
      { ...bare, body: bareBody },
    ],
    { count: 1500 },
  );
  await bare.stop();
  const ratio = base.cpu / own.cpu;
  note(
    'query_class, 10 rows, against a bare handler with the same find',
    `${ratio.toFixed(2)} (${own.cpu.toFixed(0)} / ${base.cpu.toFixed(0)} µs CPU)`,
    '≥ 0.6',
    ratio >= 0.6,
  );
}

async function policySize(few, many) {
  const body = call('query_class', { class_name: 'Listing', where: { format: 'vinyl' }, limit: 10 });
  const [ten, thousand] = await compare(
    [
      { ...few, body, headers },
      { ...many, body, headers },
    ],
    { count: 1500 },
  );
  const ratio = thousand.cpu / ten.cpu;
  note('cost of a call with 1,000 classes in the policy against 10', ratio.toFixed(2), '≤ 1.1', ratio <= 1.1);
}

/** The same call with the master key and with the rights of a user: row rights, permissions, protected fields. */
async function rightsOfUsers(service) {
  const body = call('query_class', { class_name: 'Listing', where: { format: 'vinyl' }, limit: 10 });
  const [master, user] = await compare(
    [
      { ...service, body, headers },
      { ...service, body, headers: { 'x-mcp-api-key': 'clerk-key' } },
    ],
    { count: 1500 },
  );
  const ratio = (user.cpu / master.cpu).toFixed(2);
  const figures = `${ratio} (${user.cpu.toFixed(0)} / ${master.cpu.toFixed(0)} µs CPU)`;
  note('cost of a call with the rights of a user against the master key', figures, '', null);
}

/** Reads the operation counters of the database before and after, so nothing that is sent can hide. */
async function commandsPerCall(service, uri) {
  const client = new MongoClient(uri);
  const counters = async () => {
    const { opcounters } = await client.db('admin').command({ serverStatus: 1 });
    return {
      query: Number(opcounters.query),
      command: Number(opcounters.command),
      getmore: Number(opcounters.getmore),
    };
  };
  const calls = [
    { name: 'query_class', args: { class_name: 'Listing', limit: 50 } },
    { name: 'count_objects', args: { class_name: 'Listing' } },
    { name: 'get_object', args: { class_name: 'Listing', object_id: 'WvR7oekaQL' } },
    {
      name: 'aggregate',
      args: { class_name: 'Listing', pipeline: [{ $group: { _id: '$format', n: { $sum: 1 } } }] },
    },
  ];
  for (const { name, args } of calls) {
    await once(service.url, call(name, args), headers);
    const before = await counters();
    await once(service.url, call(name, args), headers);
    const after = await counters();
    // Reading the counters is one command itself.
    const sent =
      after.query + after.command + after.getmore - before.query - before.command - before.getmore - 1;
    note(`commands sent for one ${name}`, String(sent), '1', sent === 1);
  }
  await client.close();
}

async function startUp() {
  const times = [];
  for (let round = 0; round < 3; round += 1) {
    const service = await start(SERVICE, { env: { PORT: '0' }, ready: READY });
    times.push(service.startedIn / 1000);
    await service.stop();
  }
  const best = Math.min(...times);
  note('ready after npm start, built, demo seeded', `${best.toFixed(2)} s`, '≤ 2 s', best <= 2);
}

async function leanTokens(service) {
  const result = await listed(service, { 'x-mcp-api-key': 'lean-key' });
  const tokens = Math.round(Buffer.byteLength(JSON.stringify(result)) / 4);
  note('lean tool profile, tokens of tools/list (4 bytes each)', String(tokens), '≤ 2,000', tokens <= 2000);
}

const database = await start(
  [join(root, 'dist/bundle/cli.js'), 'embedded', '--port', '0', '--seed', join(root, 'demo/seed.json')],
  {
    ready: /listening on (mongodb\S+)/,
  },
);
const few = await parley(10, database.url);
const many = await parley(1000, database.url);
await toolsList(few);
await queryClass(few, database.url);
// Both fresh, so that neither is warmer than the other.
const fresh = await parley(10, database.url);
await policySize(fresh, many);
await fresh.stop();
await rightsOfUsers(few);
await commandsPerCall(few, database.url);
await leanTokens(few);
note(
  'memory of the service after this run',
  `${residentMegabytes(few.pid).toFixed(0)} MB`,
  '≤ 180 MB',
  residentMegabytes(few.pid) <= 180,
);
await startUp();
for (const service of [few, many, database]) await service.stop();

const width = Math.max(...rows.map((row) => row.work.length));
console.log(`\nNode ${process.version}, ${cpus().length} × ${cpus()[0].model}\n`);
for (const { work, value, target, met } of rows)
  console.log(`${work.padEnd(width)}  ${value.padEnd(26)} ${target.padEnd(9)} ${met}`);
writeFileSync(join(root, 'bench-results.json'), `${JSON.stringify(rows, null, 2)}\n`);
