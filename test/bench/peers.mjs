// `npm run bench -- peers`: Parley beside other MCP servers on the same database (MONGODB_URI, else the embedded one in a process
// of its own), the same work over the same connections, interleaved. Every server runs on this Node, with the settings its
// documentation names, reading only.
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { interleaved, median, printRows } from './load.mjs';
import { Conversation } from './peers/conversation.mjs';
import { folderWith, residentMegabytes, root } from './processes.mjs';
import { copyPlain, startDatabase } from './works.mjs';

const folder = join(root, 'test/bench/peers');
if (!existsSync(join(folder, 'node_modules/.package-lock.json'))) {
  const args = ['ci', '--omit=optional', '--no-audit', '--no-fund', '--loglevel=error', '--legacy-peer-deps'];
  const installed = spawnSync('npm', args, { cwd: folder, stdio: 'inherit' });
  if (installed.status !== 0) process.exit(installed.status ?? 1);
}
const { SERVERS } = await import('./peers/servers.mjs');

const STARTS = 3;
const COUNT = Number(process.argv[2] ?? 100);
const ROUNDS = 15;
/** Of each server before each work. */
const WARM_UP = 5000;
/** Of a database that is there already; it must be empty, and keeps the rows. */
const DATABASE = 'parley_bench';
const cli = join(root, 'dist/bundle/cli.js');

async function openDatabase() {
  const given = process.env.MONGODB_URI;
  const database = given ? { url: given, stop: async () => {} } : await startDatabase({ seed: null });
  const config = stringify({ database: { uri: database.url, name: DATABASE } });
  const seeded = spawnSync(process.execPath, [cli, 'seed', join(root, 'demo/seed.json')], {
    cwd: folderWith({ 'parley.yaml': config }),
    env: { PATH: process.env.PATH },
    encoding: 'utf8',
  });
  if (seeded.status !== 0) console.error(`rows were there before: ${seeded.stderr.trim()}`);
  await copyPlain(database.url, DATABASE);
  return { uri: database.url, database: DATABASE, stop: database.stop };
}

/** Starts everything once for each round, so that noise falls on all alike; those of the last round stay. */
async function startAll(database) {
  /** @type {number[][]} */
  const times = SERVERS.map(() => []);
  let running = [];
  for (let round = 0; round < STARTS; round += 1) {
    for (const { stop } of running) await stop();
    running = [];
    for (const [index, server] of SERVERS.entries()) {
      const service = await server.start(database);
      times[index].push(service.startedIn);
      running.push(service);
    }
  }
  return running.map((service, index) => ({ ...service, ...SERVERS[index], ready: median(times[index]) }));
}

/** A conversation that shows a server does the work, before it is measured. */
async function prove(server, database) {
  const agent = new http.Agent({ keepAlive: true });
  const talk = await new Conversation(server.url, agent, server.headers).open();
  const calls = server.calls(database.database);
  const { structuredContent } = await talk.result('tools/call', calls.find);
  const parts = { find: /vinyl/g, group: /_id/g, plainFind: /vinyl/g, plainGroup: /_id/g };
  for (const [call, part] of Object.entries(parts)) {
    const text = JSON.stringify((await talk.result('tools/call', calls[call])).content);
    if ((text.match(part)?.length ?? 0) < 10)
      throw new Error(`${server.name} does not do the work: ${call} ${text}`);
  }
  const counted = JSON.stringify(await talk.result('tools/call', calls.count));
  if (!/\d/.test(counted)) throw new Error(`${server.name} does not do the work: ${counted}`);
  const listed = Buffer.byteLength(JSON.stringify(await talk.result('tools/list')));
  return { talk, calls, listed, structured: structuredContent !== undefined };
}

const opening = (server) => async (agent) => {
  const talk = await new Conversation(server.url, agent, server.headers).open();
  await talk.ask('tools/list');
  await talk.close();
};

const calling =
  ({ url }, talk, call) =>
  async (agent) => {
    const one = new Conversation(url, agent, talk.headers);
    await one.ask('tools/call', call);
  };

const database = await openDatabase();
const servers = await startAll(database);
const proven = [];
for (const server of servers) proven.push(await prove(server, database));

const callOf = (name) =>
  servers.map((server, at) => calling(server, proven[at].talk, proven[at].calls[name]));
const works = {
  'initialize, initialized, tools/list, end': servers.map((server) => opening(server)),
  'find of ten rows': callOf('find'),
  count: callOf('count'),
  'ten groups': callOf('group'),
  'find of ten rows, plain collection': callOf('plainFind'),
  'ten groups, plain collection': callOf('plainGroup'),
};
const rows = [];
const pairs = Object.values(works).map((each) => ({
  count: COUNT,
  candidates: servers.map(({ cpuSeconds }, at) => ({ cpuSeconds, work: each[at] })),
}));
const figures = await interleaved(pairs, { rounds: ROUNDS, warmUp: WARM_UP });
/** How much dearer each work of another server must be: than Parley, and than Parley with `fastReads`, where more is asked of it. */
const TARGETS = {
  '@rekog/mcp-nest': { Parley: [4, 2, 2, 2, 2, 2], 'Parley, fastReads': [4, 3, 2, 2, 3, 2] },
  'mongodb-mcp-server': { Parley: [14, 4, 3, 3, 4, 3], 'Parley, fastReads': [14, 5, 3, 3, 5, 3] },
};
for (const [at, name] of Object.keys(works).entries()) {
  rows.push([`${name}: ms CPU`, ...figures[at].map((cpu) => (median(cpu) / 1000).toFixed(2))]);
  for (const [base, { name: ours }] of servers.entries()) {
    if (!ours.startsWith('Parley')) continue;
    // How much dearer each of the others is in the same round.
    const own = figures[at][base];
    const dearer = figures[at].map((cpu, server) => {
      if (servers[server].name.startsWith('Parley')) return '';
      const ratio = median(cpu.map((value, round) => value / own[round]));
      const wanted = TARGETS[servers[server].name.split(' ')[0]]?.[ours][at];
      return `${ratio.toFixed(2)} ×${wanted ? ` (≥ ${wanted} ×: ${ratio >= wanted ? 'met' : 'MISSED'})` : ''}`;
    });
    rows.push([`  against ${ours}`, ...dearer]);
  }
}
rows.push(['memory after that, MB', ...servers.map(({ pid }) => residentMegabytes(pid).toFixed(0))]);
rows.push(['ready after, s', ...servers.map(({ ready }) => (ready / 1000).toFixed(1))]);
rows.push([
  'tools/list, bytes (tokens)',
  ...proven.map(({ listed }) => `${listed} (${Math.round(listed / 4)})`),
]);

rows.push(['structured content of a find', ...proven.map(({ structured }) => (structured ? 'yes' : 'no'))]);

const place = process.env.MONGODB_URI ? 'MongoDB at MONGODB_URI' : 'embedded database';
console.log(`\nNode ${process.version}, ${cpus().length} × ${cpus()[0].model}, ${place}\n`);
const header = ['', ...servers.map(({ name }) => name)];
printRows([header, ...rows]);
console.log();
for (const { name, notes } of servers) console.log(`${name}: ${notes}`);
writeFileSync(join(root, 'bench-peers.json'), `${JSON.stringify({ header, rows }, null, 2)}\n`);
for (const { stop } of servers) await stop();
await database.stop();
