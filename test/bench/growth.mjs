// `npm run bench -- growth [dimension…]`: how the CPU of a call, the start and the memory grow with what an installation has more of.
// One service for each size of a dimension, called in turns; a factor is against the first size in the same run.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { compare, once, request } from './load.mjs';
import { folderWith, SERVICE, start } from './processes.mjs';
import { call, configuration, LIST, message, READY, startDatabase } from './works.mjs';
import http from 'node:http';

const UNLIMITED = { rateLimit: 1_000_000_000 };
const COUNT = 600;
const MB = 1024 * 1024;
const number = (length, one) => Array.from({ length }, (_, at) => one(at));
const record = (length, entry) => Object.fromEntries(number(length, entry));

const database = await startDatabase({ seed: null });
const client = await MongoClient.connect(database.url);

/** A database of its own: classes with ten columns beside those of Parse, and rows of the first one. */
async function fill(name, { classes = 1, columns = 10, rows = 10 }) {
  const names = number(columns, (at) => `column${at}`);
  const fields = Object.fromEntries(names.map((column) => [column, 'number']));
  await client
    .db(name)
    .collection('_SCHEMA')
    .insertMany(
      number(classes, (at) => ({
        _id: `Made${at}`,
        objectId: 'string',
        createdAt: 'date',
        updatedAt: 'date',
        ...fields,
      })),
    );
  await client
    .db(name)
    .collection('Made0')
    .insertMany(
      number(rows, (at) => ({
        _id: `row${at}`,
        _created_at: new Date(at),
        _updated_at: new Date(at),
        ...Object.fromEntries(names.map((column, place) => [column, at * place])),
      })),
    );
}

/** @param {{ name: string, agents?: number, classes?: Record<string, object>, server?: object }} options */
const configured = ({ name, agents = 1, classes = { Made0: {} }, server = {} }) =>
  configuration({
    uri: database.url,
    name,
    server,
    agents: record(agents, (at) => [`agent${at}`, UNLIMITED]),
    auth: number(agents, (at) => ({ apiKey: `key-of-agent-${at}`, agent: `agent${at}` })),
    policy: {
      suppressMasterKeyWarning: true,
      maskingKey: 'a key for the pseudonyms of a measurement',
      classes,
    },
  });

async function serve(options) {
  const folder = folderWith({ 'parley.yaml': configured(options) });
  const service = await start(['--expose-gc', ...SERVICE], { cwd: folder, ready: READY });
  return { ...service, folder };
}

const find = (more = {}) => call('query_class', { class_name: 'Made0', limit: 10, ...more });
const as = (agent) => ({ 'x-mcp-api-key': `key-of-agent-${agent}` });
const CLASSES = (count) =>
  record(count, (at) => [`Made${at}`, { fields: ['column0', 'column1', 'column2'] }]);

/** Each prepares one size: the options of its service, the body that is measured, and who asks. */
const DIMENSIONS = {
  classes: {
    sizes: [10, 100, 1_000, 10_000],
    prepare: async (size) => {
      await fill(`classes${size}`, { classes: size });
      return { options: { name: `classes${size}`, classes: CLASSES(size) }, body: find() };
    },
  },
  'classes, tools/list': {
    sizes: [10, 1_000],
    prepare: async (size) => {
      await fill(`listed${size}`, { classes: size });
      return { options: { name: `listed${size}`, classes: CLASSES(size) }, body: LIST };
    },
  },
  agents: {
    sizes: [1, 100, 1_000, 10_000],
    prepare: async (size) => {
      await fill(`agents${size}`, {});
      return { options: { name: `agents${size}`, agents: size }, body: find(), agent: size - 1 };
    },
  },
  'rules of a class': {
    sizes: [1, 10, 100, 499],
    prepare: async (size) => {
      await fill(`rules${size}`, { columns: 510 });
      const masks = record(size, (at) => [`column${at + 5}`, { readonly: 'hash' }]);
      const filters = { $and: number(size, (at) => ({ [`column${at + 5}`]: { $gte: 0 } })) };
      return {
        options: { name: `rules${size}`, classes: { Made0: { masks, filters } } },
        body: find({ keys: ['column0', 'column1'] }),
      };
    },
  },
  columns: {
    sizes: [10, 100, 1_000],
    prepare: async (size) => {
      await fill(`columns${size}`, { columns: size });
      return { options: { name: `columns${size}` }, body: find({ keys: ['column0', 'column1'] }) };
    },
  },
  'columns, all of them shown': {
    sizes: [10, 100, 1_000],
    prepare: async (size) => {
      await fill(`shown${size}`, { columns: size });
      return { options: { name: `shown${size}` }, body: find({ limit: 1 }) };
    },
  },
  rows: {
    sizes: [1, 10, 100, 1_000],
    prepare: async (size) => {
      await fill(`rows${size}`, { rows: size });
      return { options: { name: `rows${size}` }, body: find({ limit: size }) };
    },
  },
  sessions: {
    sizes: [10, 1_000, 10_000, 50_000],
    prepare: async (size) => {
      await fill(`sessions${size}`, {});
      return {
        options: { name: `sessions${size}`, server: { sessions: 'strict' } },
        body: find(),
        open: (service) => openSessions(service, size),
      };
    },
  },
};

/** @returns the headers of a call in the last of so many sessions */
async function openSessions({ url }, count) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
  const body = message('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'growth', version: '1' },
  });
  const accept = { accept: 'application/json, text/event-stream' };
  let left = count;
  let last = '';
  await Promise.all(
    number(8, async () => {
      while (left-- > 0) {
        const { headers, status, text } = await request(agent, url, body, { ...as(0), ...accept });
        if (status !== 200) throw new Error(`initialize answered ${status}: ${text}`);
        last = String(headers['mcp-session-id']);
      }
    }),
  );
  agent.destroy();
  return { ...accept, 'mcp-session-id': last, 'mcp-protocol-version': '2025-11-25' };
}

async function measure(name, { sizes, prepare }) {
  const services = [];
  const rows = [];
  for (const size of sizes) {
    const { options, body, agent = 0, open } = await prepare(size);
    const service = await serve(options);
    services.push(service);
    const more = open ? await open(service) : {};
    const headers = { ...as(agent), ...more };
    const first = performance.now();
    const { text } = await once(service.url, body, headers);
    if (text.includes('"isError":true')) throw new Error(`${name} ${size}: ${text}`);
    rows.push({ size, service, body, headers, first: performance.now() - first });
  }
  const figures = await compare(
    rows.map(({ service, body, headers }) => ({ ...service, body, headers })),
    { count: COUNT, rounds: 5, warmUp: 3_000 },
  );
  for (const [at, { size, service, first }] of rows.entries()) {
    const { rss } = await service.memory();
    const factor = figures[at].cpu / figures[0].cpu;
    console.log(
      `| ${name} | ${size.toLocaleString('en')} | ${figures[at].cpu.toFixed(0)} | ${factor.toFixed(2)} | ` +
        `${(service.startedIn / 1000).toFixed(2)} s | ${first.toFixed(0)} ms | ${(rss / MB).toFixed(0)} MB |`,
    );
  }
  for (const service of services) await service.stop();
}

/** Start and reload of a policy of a thousand classes and a thousand agents: until the first call is answered under it. */
async function measureReload() {
  const size = 1_000;
  await fill('reload', { classes: size });
  const options = { name: 'reload', agents: size, classes: CLASSES(size) };
  const began = performance.now();
  const service = await serve(options);
  const asked = await once(service.url, find(), as(size - 1));
  if (asked.status !== 200) throw new Error(`answered ${asked.status}`);
  const started = performance.now() - began;
  const before = await service.cpuSeconds();
  const agents = size + 1;
  writeFileSync(join(service.folder, 'parley.yaml'), configured({ ...options, agents }));
  const changed = performance.now();
  process.kill(/** @type {number} */ (service.pid), 'SIGHUP');
  while ((await once(service.url, find(), as(size))).status !== 200)
    await new Promise((resolve) => setTimeout(resolve, 20));
  const reloaded = performance.now() - changed;
  const used = (await service.cpuSeconds()) - before;
  console.log(
    `1,000 classes and 1,000 agents: started and a call answered in ${(started / 1000).toFixed(2)} s ` +
      `(${before.toFixed(2)} s of CPU), reloaded in ${(reloaded / 1000).toFixed(2)} s (${used.toFixed(2)} s of CPU)`,
  );
  await service.stop();
}

const asked = process.argv.slice(2);
for (const name of asked)
  if (!DIMENSIONS[name] && name !== 'reload')
    throw new Error(`no dimension ${name}: ${[...Object.keys(DIMENSIONS), 'reload'].join('; ')}`);
console.log('| more of | size | µs of CPU | factor | ready after | first call | resident |');
console.log('| --- | --- | --- | --- | --- | --- | --- |');
for (const [name, dimension] of Object.entries(DIMENSIONS))
  if (asked.length === 0 || asked.includes(name)) await measure(name, dimension);
if (asked.length === 0 || asked.includes('reload')) await measureReload();
await client.close();
await database.stop();
