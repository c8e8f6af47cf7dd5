// `npm run bench -- capacity --check`: what the model says of a mix of requests against what one, two and three replicas really use at a
// fixed rate far below what they can do. Adds the result to tools/capacity/measured.json.
import { readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { awakeAt, costs, DEFAULTS } from '../../tools/capacity/model.mjs';
import { Client, KINDS, repeat, startMeasured, withWorld } from './capacity-kinds.mjs';
import { CONNECTIONS } from './load.mjs';
import { sumOf } from './wire-counts.mjs';

const FILE = new URL('../../tools/capacity/measured.json', import.meta.url);
/** Replicas, and requests per second of all together: what a request costs depends on how busy a replica is. */
const LOADS = [
  [1, 20],
  [1, 60],
  [1, 180],
  [2, 60],
  [2, 180],
  [3, 60],
  [3, 180],
];
const SECONDS = 15;
const WARM_UP = 1500;

/** Kinds in the proportions of the mix, spread evenly. @returns {() => any} the next one */
function turns(mix) {
  const kinds = Object.entries(mix).map(([name, weight]) => ({
    ...KINDS.find((kind) => kind.name === name),
    weight,
    due: 0,
  }));
  const whole = kinds.reduce((sum, { weight }) => sum + weight, 0);
  return () => {
    for (const kind of kinds) kind.due += kind.weight / whole;
    const [next] = kinds.toSorted((one, other) => other.due - one.due);
    next.due -= 1;
    return next;
  };
}

/** Sends the mix to the replicas in turn, at a fixed rate whatever they do. @returns how many were sent, and in what time */
async function sent(clients, rate, seconds, next) {
  const began = performance.now();
  const running = [];
  for (let number = 0; number < rate * seconds; number += 1) {
    const wait = began + (number * 1000) / rate - performance.now();
    if (wait > 0) await pause(wait);
    running.push(next().work(clients[number % clients.length]));
  }
  await Promise.all(running);
  return { count: running.length, seconds: (performance.now() - began) / 1000 };
}

const percent = (observed, predicted) => Math.round((observed / predicted - 1) * 100);

/** The loads of so many replicas, one after the other. */
async function withReplicas(count, world) {
  const { uri, redisUrl } = world;
  const services = [];
  for (let number = 0; number < count; number += 1)
    services.push(await startMeasured({ uri, redis: redisUrl }));
  const clients = services.map((service) => new Client(service));
  const next = turns(DEFAULTS.demand.mix);
  for (const client of clients) await repeat(WARM_UP, CONNECTIONS, () => next().work(client));
  const rows = [];
  for (const [replicas, rate] of LOADS) {
    if (replicas !== count) continue;
    await pause(1000);
    rows.push(await compared({ services, clients, rate, next }, world));
    console.log(JSON.stringify(rows.at(-1)));
  }
  for (const client of clients) client.close();
  await Promise.all(services.map((service) => service.stop()));
  return rows;
}

/** What a request takes at one rate, and what the model says of it. */
async function compared({ services, clients, rate, next }, { measured, database, redis }) {
  const cpu = async () =>
    (await Promise.all(services.map((service) => service.cpuSeconds()))).reduce((sum, one) => sum + one, 0);
  const before = [await cpu(), sumOf(database.counts().commands)];
  let load;
  const watched = await redis.watched(async () => {
    load = await sent(clients, rate, SECONDS, next);
  });
  const after = [await cpu(), sumOf(database.counts().commands)];
  const each = (total) => total / load.count;
  const cost = costs(measured, { ...DEFAULTS.demand, callsPerSecond: 1 });
  const idle = (figure) => (figure * services.length * load.seconds) / load.count;
  return {
    replicas: services.length,
    rate,
    reached: Number((load.count / load.seconds).toFixed(1)),
    cpu: Math.round(each((after[0] - before[0]) * 1e6)),
    cpuOfRequests: Math.round(cost.cpu + idle(measured.idle.cpu)),
    redisCommands: Number(each(sumOf(watched.sent)).toFixed(3)),
    redisPredicted: Number((cost.redisCommands + idle(measured.idle.redisCommands)).toFixed(3)),
    databaseCommands: Number(each(after[1] - before[1]).toFixed(3)),
    databasePredicted: Number((cost.databaseCommands + idle(measured.idle.databaseCommands)).toFixed(3)),
  };
}

/** The curve of `awakeAt` through what one replica took at its loads: a line through the inverses (least squares). */
function awakeOf(points) {
  const inverses = points.map(({ rate, beyond }) => ({ x: 1 / rate, y: 1 / beyond }));
  const mean = (of) => inverses.reduce((sum, one) => sum + of(one), 0) / inverses.length;
  const [x, y] = [mean((one) => one.x), mean((one) => one.y)];
  const slope = mean((one) => (one.x - x) * (one.y - y)) / mean((one) => (one.x - x) ** 2);
  const [most, half] = [1 / (y - slope * x), slope / (y - slope * x)];
  if (!(most > 0 && half >= 0))
    throw new Error('what one replica took beyond its requests does not grow with their rate');
  return { most: Math.round(most), half: Number(half.toFixed(1)) };
}

/**
 * A replica with traffic takes CPU beyond that of its requests. It is taken from one replica, and the loads of several are predicted
 * with it.
 * @returns it, and each row with the deviation of what was observed
 */
function judged(rows) {
  const points = rows
    .filter(({ replicas }) => replicas === 1)
    .map(({ cpu, cpuOfRequests, reached }) => ({ rate: reached, beyond: (cpu - cpuOfRequests) * reached }));
  const awake = awakeOf(points);
  return {
    awake,
    rows: rows.map((row) => {
      const { replicas, reached } = row;
      const beyond = awakeAt(awake, reached / replicas) * replicas;
      const cpuPredicted = Math.round(row.cpuOfRequests + beyond / reached);
      return {
        ...row,
        cpuPredicted,
        cpuDeviation: percent(row.cpu, cpuPredicted),
        redisDeviation: percent(row.redisCommands, row.redisPredicted),
        databaseDeviation: percent(row.databaseCommands, row.databasePredicted),
      };
    }),
  };
}

export async function check() {
  const measured = JSON.parse(readFileSync(FILE, 'utf8'));
  const rows = [];
  await withWorld(async (world) => {
    for (const count of new Set(LOADS.map(([replicas]) => replicas)))
      rows.push(...(await withReplicas(count, { ...world, measured })));
  });
  const checked = {
    date: new Date().toISOString().slice(0, 10),
    load: Number(loadavg()[0].toFixed(1)),
    ...judged(rows),
  };
  console.log(checked);
  writeFileSync(FILE, `${JSON.stringify({ ...measured, checked }, null, 2)}\n`);
}
