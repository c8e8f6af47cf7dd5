// `npm run bench -- capacity`: what each kind of request costs the service, Redis and the database, and what is held in memory. Prints
// it and writes tools/capacity/measured.json, from which `npm run capacity` computes. `--part <name>` measures one part of it again (kinds,
// streams, memory); `--only <text>` some of the kinds and `--brief` a few requests of each, to see that it runs: both write nothing.
// `--check` compares the model with one, two and three replicas instead (capacity-check.mjs).
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { check } from './capacity-check.mjs';
import { Client, KINDS, repeat, startMeasured, withWorld } from './capacity-kinds.mjs';
import { memories } from './capacity-memory.mjs';
import { streams } from './capacity-streams.mjs';
import { CONNECTIONS, median } from './load.mjs';
import { root } from './processes.mjs';
import { sumOf } from './wire-counts.mjs';

const { values } = parseArgs({
  options: {
    part: { type: 'string', multiple: true, default: ['kinds', 'streams', 'memory'] },
    only: { type: 'string', default: '' },
    brief: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
  },
});
/** Requests of a brief run. */
const some = (count) => (values.brief ? Math.ceil(count / 20) : count);
/** Whether figures are to be kept. */
const whole = values.only === '' && !values.brief;
const FILE = join(root, 'tools/capacity/measured.json');
const ROUNDS = 5;
const COUNT = 100;
const WARM_UP = 600;
const FIRST_WARM_UP = 4000;
/** Of each kind, while the commands are watched. */
const WATCHED = 40;
const IDLE_SECONDS = 10;
const STREAMS = 400;

/** @returns {Record<string, number>} */
const difference = (after, before) =>
  Object.fromEntries(
    Object.keys(after).flatMap((name) => {
      const more = after[name] - (before[name] ?? 0);
      return more > 0 ? [[name, more]] : [];
    }),
  );

/** What a service without requests uses in a second. */
async function idle({ service, database, redis }) {
  const from = [await service.cpuSeconds(), database.counts(), await redis.counters()];
  const { sent } = await redis.watched(() => pause(IDLE_SECONDS * 1000));
  const to = [await service.cpuSeconds(), database.counts(), await redis.counters()];
  return {
    cpu: ((to[0] - from[0]) / IDLE_SECONDS) * 1e6,
    redisCommands: sumOf(sent) / IDLE_SECONDS,
    databaseCommands: sumOf(difference(to[1].commands, from[1].commands)) / IDLE_SECONDS,
  };
}

/** One kind of request: CPU in rounds, then commands while they are watched. All figures are those of one request. */
async function measured(kind, world, base) {
  const { at = CONNECTIONS, work } = kind;
  const count = some(kind.count ?? COUNT);
  const { service, database, redis } = world;
  const client = new Client(service);
  const run = (times) => repeat(times, at, () => work(client));
  await run(some(kind.warmUp ?? WARM_UP));
  const rounds = [];
  const before = { ...(await redis.counters()), database: database.counts(), http: client.bytes };
  for (let round = 0; round < ROUNDS; round += 1) {
    const from = [await service.cpuSeconds(), performance.now()];
    await run(count);
    const seconds = (performance.now() - from[1]) / 1000;
    rounds.push(((await service.cpuSeconds()) - from[0]) * 1e6 - base.cpu * seconds);
  }
  const after = { ...(await redis.counters()), database: database.counts(), http: client.bytes };
  const requests = count * ROUNDS;
  const each = (total) => Number((total / requests).toFixed(2));
  const commands = database.counts().commands;
  const watchedFrom = performance.now();
  const { sent, inScripts } = await redis.watched(() => run(WATCHED));
  const watched = (performance.now() - watchedFrom) / 1000;
  const databaseCommands = difference(database.counts().commands, commands);
  client.close();
  return {
    cpu: Math.round(median(rounds) / count),
    httpBytes: Math.round(each(after.http - before.http)),
    redisCommands: perRequest(sumOf(sent) - base.redisCommands * watched),
    redisInScripts: perRequest(inScripts),
    redisBytes: Math.round(each(after.bytes - before.bytes)),
    redisCpu: Number((((after.cpu - before.cpu) * 1e6) / requests).toFixed(1)),
    redisPublished: perRequest(sent.publish ?? 0),
    redisKept: Math.max(0, Math.round(each(after.memory - before.memory))),
    databaseCommands: perRequest(sumOf(databaseCommands) - base.databaseCommands * watched),
    databaseBytes: Math.round(
      each(after.database.sent + after.database.received - before.database.sent - before.database.received),
    ),
    databaseNames: Object.fromEntries(
      Object.entries(databaseCommands).map(([name, times]) => [name, perRequest(times)]),
    ),
  };
}

const perRequest = (total) => Math.max(0, Number((total / WATCHED).toFixed(2)));

/** @type {[title: string, pick: (kind: any) => number][]} */
const COLUMNS = [
  ['CPU µs', ({ cpu }) => cpu],
  ['HTTP bytes', ({ httpBytes }) => httpBytes],
  ['Redis cmds', ({ redisCommands }) => redisCommands],
  ['in scripts', ({ redisInScripts }) => redisInScripts],
  ['Redis CPU µs', ({ redisCpu }) => redisCpu],
  ['Redis bytes', ({ redisBytes }) => redisBytes],
  ['DB cmds', ({ databaseCommands }) => databaseCommands],
  ['DB bytes', ({ databaseBytes }) => databaseBytes],
];

function print(kinds) {
  const width = Math.max(...kinds.map(({ title }) => title.length));
  console.log([''.padEnd(width), ...COLUMNS.map(([name]) => name.padStart(12))].join(' '));
  for (const kind of kinds)
    console.log(
      [kind.title.padEnd(width), ...COLUMNS.map(([, pick]) => String(pick(kind)).padStart(12))].join(' '),
    );
}

async function measureAll(opened) {
  const service = await startMeasured({ uri: opened.uri, redis: opened.redisUrl });
  const world = { ...opened, service };
  const parts = new Set(values.part);
  await warmed(service);
  const base = await idle(world);
  /** @type {{ idle: object, kinds?: object[], streams?: object, memory?: object }} */
  const found = { idle: rounded(base) };
  if (parts.has('kinds')) found.kinds = await kindsOf(world, base);
  if (parts.has('streams') && values.only === '') found.streams = await streams(world, base, some(STREAMS));
  await service.stop();
  if (parts.has('memory') && values.only === '') found.memory = await memories(world);
  const machine = {
    cpu: cpus()[0].model,
    cores: cpus().length,
    node: process.version,
    load: Number(loadavg()[0].toFixed(1)),
  };
  return { date: new Date().toISOString().slice(0, 10), machine, ...found };
}

/** What all kinds have in common is warm afterwards. */
async function warmed(service) {
  const [query] = KINDS.filter(({ name }) => name === 'query_class');
  const client = new Client(service);
  await repeat(whole ? FIRST_WARM_UP : some(WARM_UP), CONNECTIONS, () => query.work(client));
  client.close();
  await pause(2000);
}

async function kindsOf(world, base) {
  const found = [];
  for (const kind of KINDS.filter(({ name }) => name.includes(values.only))) {
    found.push({ name: kind.name, title: kind.title, ...(await measured(kind, world, base)) });
    console.error(`${kind.title}: ${found.at(-1).cpu} µs`);
  }
  return found;
}

const rounded = (figures) =>
  Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, Number(value.toFixed(1))]));

if (values.check) {
  await check();
} else {
  const result = await withWorld(measureAll);
  if (result.kinds) print(result.kinds);
  for (const name of ['idle', 'streams', 'memory']) if (result[name]) console.log(name, result[name]);
  console.log(result.date, result.machine);
  const all = values.part.length === 3 ? {} : JSON.parse(readFileSync(FILE, 'utf8'));
  if (whole) writeFileSync(FILE, `${JSON.stringify({ ...all, ...result }, null, 2)}\n`);
}
process.exit(0);
