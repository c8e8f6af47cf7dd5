// `npm run bench`: every target of docs/operations/performance.md with its figure of this run; also in bench-results.json.
// `--soak <minutes>` watches memory for longer than half a minute, `--only <text>` makes only some of the rows: `beside`, `plain`, `policy`,
// `in process`, `ready`, `memory` or `two`.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { MongoClient } from 'mongodb';
import { listed } from './listing.mjs';
import { interleaved, median, once, printRows } from './load.mjs';
import { folderWith, root, SERVICE, start } from './processes.mjs';
import { twoAgainstOne } from './several-processes.mjs';
import { soak } from './soak-load.mjs';
import {
  call,
  configuration,
  copyPlain,
  HEADERS,
  PLAIN_WORKS,
  prove,
  provePlain,
  READY,
  startBare,
  startDatabase,
  startParley,
  THOUSAND,
  WORKS,
} from './works.mjs';

const { values } = parseArgs({
  options: { soak: { type: 'string', default: '0.5' }, only: { type: 'string', default: '' } },
});
const ROUNDS = 25;
const FIRST_WARM_UP = 8000;
const FIND = WORKS[0];
const rows = [];
const note = (work, value, target, met) => {
  rows.push({ work, value, target, met: met === null ? '' : met ? 'met' : 'MISSED' });
  console.error(`${work}: ${value}`);
};
const us = (value) => value.toFixed(0);

/** The works beside the bare handler. */
async function beside(database) {
  const service = await startParley({ uri: database.url });
  const fast = await startParley({ uri: database.url, fastReads: true });
  const bare = await startBare(service, database.url);
  const byHand = await startBare(service, database.url, { BENCH_COMMANDS: '1' });
  /** @type {import('./works.mjs').Work[]} */
  const works = [...WORKS, { ...THOUSAND, count: 0.4, warmUp: 300 }];
  for (const work of works) {
    for (const side of [service, fast]) await prove(side, bare, work);
    await prove(service, byHand, work);
  }
  const figures = await interleaved(
    works.map(({ own, bare: base, count = 1, warmUp }, at) => ({
      count: Math.round(100 * count),
      // What all works have in common is warm after the first.
      warmUp: at === 0 ? FIRST_WARM_UP : warmUp,
      candidates: [
        { ...service, body: own, headers: HEADERS },
        { ...fast, body: own, headers: HEADERS },
        { ...bare, body: base },
        { ...byHand, body: base },
      ],
    })),
    { rounds: ROUNDS },
  );
  for (const [at, { name, target, fastTarget, ownPart }] of works.entries()) {
    const [own, ownFast, base, hand] = figures[at];
    const beside = (cpus) => median(base.map((cpu, round) => cpu / cpus[round]));
    const noteRatio = (way, cpus, wanted) => {
      const ratio = beside(cpus);
      const parts = `(${us(median(cpus))} / ${us(median(base))} µs CPU)`;
      note(
        `${name}${way}, of bare`,
        `${ratio.toFixed(2)} ${parts}`,
        `≥ ${wanted.toFixed(1)}`,
        ratio >= wanted,
      );
    };
    if (name === THOUSAND.name) {
      const mine = median(own);
      note(`${name}, ms CPU`, `${(mine / 1000).toFixed(1)} ms`, '≤ 2 ms', mine <= 2000);
      continue;
    }
    noteRatio('', own, target);
    if (fastTarget !== undefined) noteRatio(', fastReads', ownFast, fastTarget);
    if (ownPart === undefined) continue;
    const part = median(own.map((cpu, round) => cpu - hand[round]));
    note(`${name}, own part beside a command by hand`, `${us(part)} µs`, `≤ ${ownPart} µs`, part <= ownPart);
  }
  await Promise.all([bare.stop(), byHand.stop(), fast.stop()]);
  return service;
}

/** The same call of two services, two callers or two classes; what the second costs against the first. */
async function against(first, second) {
  const body = FIND.own;
  const [[one, other]] = await interleaved(
    [{ count: 100, candidates: [first, second].map((side) => ({ headers: HEADERS, body, ...side })) }],
    { rounds: ROUNDS * 2, warmUp: FIRST_WARM_UP },
  );
  const ratio = median(other.map((cpu, round) => cpu / one[round]));
  return { ratio, text: `${ratio.toFixed(2)} (${us(median(other))} / ${us(median(one))} µs CPU)` };
}

/** One service, one database that holds the same rows in both forms. */
async function plainClasses({ url: uri }) {
  await copyPlain(uri);
  const service = await startParley({ uri, plain: true });
  for (const work of PLAIN_WORKS) {
    await provePlain(service, work);
    const { ratio, text } = await against({ ...service, body: work.parse }, { ...service, body: work.own });
    note(`${work.name} against a Parse class`, text, '≤ 1.0', ratio <= 1);
  }
  await service.stop();
}

async function policySize({ url: uri }) {
  const few = await startParley({ uri, classes: 10 });
  const many = await startParley({ uri, classes: 1000 });
  const { ratio, text } = await against(few, many);
  note('a call with 1,000 classes in the policy against 10', text, '≤ 1.1', ratio <= 1.1);
  await Promise.all([few.stop(), many.stop()]);
}

/** Row rights, permissions, protected fields. */
async function rightsOfUsers(service) {
  const { text } = await against(service, { ...service, headers: { 'x-mcp-api-key': 'clerk-key' } });
  note('a call with the rights of a user against the master key', text, '', null);
}

/** Reads the operation counters of the database before and after, so nothing that is sent can hide. */
async function commandsPerCall(service, uri) {
  const client = new MongoClient(uri);
  const counters = async () => {
    const { opcounters } = await client.db('admin').command({ serverStatus: 1 });
    return ['query', 'command', 'getmore'].reduce((sum, name) => sum + Number(opcounters[name]), 0);
  };
  const get = call('get_object', { class_name: 'Listing', object_id: 'WvR7oekaQL' });
  const works = [...WORKS.filter(({ own }) => own.includes('tools/call')), { name: 'get_object', own: get }];
  const most = { sent: 0 };
  for (const { own, name } of works) {
    await once(service.url, own, HEADERS);
    const before = await counters();
    await once(service.url, own, HEADERS);
    // Reading the counters is one command itself.
    const sent = (await counters()) - before - 1;
    if (sent > most.sent) Object.assign(most, { sent, name });
  }
  note(
    'commands sent for one find, count, get or aggregate, at most',
    String(most.sent),
    '1',
    most.sent === 1,
  );
  await client.close();
}

async function leanTokens(service) {
  const result = await listed(service, { 'x-mcp-api-key': 'lean-key' });
  const tokens = Math.round(Buffer.byteLength(JSON.stringify(result)) / 4);
  note('lean tool profile, tokens of tools/list (4 bytes each)', String(tokens), '≤ 2,000', tokens <= 2000);
}

async function startUp({ url: uri }) {
  const external = folderWith({ 'parley.yaml': configuration({ uri }) });
  /** @type {{ name: string, cwd: string, seconds: number, times: number[] }[]} */
  const ways = [
    { name: 'external database', cwd: external, seconds: 0.4, times: [] },
    { name: 'demo seeded', cwd: root, seconds: 0.8, times: [] },
  ];
  for (let round = 0; round < 5; round += 1)
    for (const { cwd, times } of ways) {
      const service = await start(SERVICE, { cwd, env: { PORT: '0' }, ready: READY, clock: false });
      times.push(service.startedIn / 1000);
      await service.stop();
    }
  for (const { name, seconds, times } of ways) {
    const value = median(times);
    note(
      `ready: ${name}, median of ${times.length}`,
      `${value.toFixed(2)} s`,
      `≤ ${seconds} s`,
      value <= seconds,
    );
  }
}

/** In a process of its own, because it serves in its own process and stubs the store there. */
function withoutHttp() {
  const script = pathToFileURL(join(root, 'test/bench/in-process.mjs')).href;
  const code = `const { inProcess } = await import('${script}');
    process.stdout.write(JSON.stringify(await inProcess()));
    process.exit();`;
  // Its log has a line for each call.
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  if (child.status !== 0) throw new Error(`test/bench/in-process.mjs ended with ${child.status}`);
  for (const { work, microseconds, target } of JSON.parse(child.stdout))
    if (target !== undefined)
      note(`in process, ${work}`, `${us(microseconds)} µs`, `≤ ${target} µs`, microseconds <= target);
}

async function memory() {
  const { lowest, highest, minutes } = await soak({ minutes: Number(values.soak) });
  const flat = highest - lowest < 0.1 * highest;
  note(
    `memory, second half of ${minutes} min of soak`,
    `${us(lowest)} – ${us(highest)} MB`,
    '≤ 150 MB',
    highest <= 150 && flat,
  );
}

/** Calls of a tool that computes; of a query the CPU alone, because database and client take part of the cores. */
async function processes({ url: uri }) {
  const { busy, query } = await twoAgainstOne(uri);
  const calls = busy.perSecond.map(us).join(' → ');
  const name = 'two processes against one';
  note(
    `${name}, calls per second of a tool that computes`,
    `${busy.faster.toFixed(2)} (${calls})`,
    '≥ 1.7',
    busy.faster >= 1.7,
  );
  const cost = `${query.dearer.toFixed(2)} (${query.cpu.map(us).join(' → ')} µs CPU)`;
  note(`${name}, CPU of a query_class`, cost, '', null);
}

const database = await startDatabase();
const wanted = (name) => name.includes(values.only);
if (wanted('beside')) {
  const service = await beside(database);
  await rightsOfUsers(service);
  await commandsPerCall(service, database.url);
  await leanTokens(service);
  await service.stop();
}
if (wanted('plain')) await plainClasses(database);
if (wanted('policy')) await policySize(database);
if (wanted('in process')) withoutHttp();
if (wanted('ready')) await startUp(database);
if (wanted('memory')) await memory();
if (wanted('two')) await processes(database);
await database.stop();

const machine = `Node ${process.version}, ${cpus().length} × ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)}`;
console.log(`\n${machine}\n`);
printRows(rows.map(({ work, value, target, met }) => [work, value, target, met]));
writeFileSync(join(root, 'bench-results.json'), `${JSON.stringify({ machine, rows }, null, 2)}\n`);
