// A mixed load for a long time: conversations, listening streams, tasks and exports. What must not grow is sampled from inside the
// service and judged by its slope over the second half, with the confidence of that slope.
import { Redis } from 'ioredis';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startRedisServer } from '../../tools/redis-server.mjs';
import { conversations } from '../bench/soak-load.mjs';
import { HEADERS, startDatabase, startParley } from '../bench/works.mjs';
import { ModernClient, SessionClient, TASKS } from './support/modern-client.mjs';
import { slope } from './support/regression.mjs';

export const part = {
  title: 'Memory, handles, Redis keys and event loop stay flat',
  minutes: 10,
  brief: 0.1,
};

const WATCHED = fileURLToPath(new URL('support/watched-process.cjs', import.meta.url));
const PLUGIN = fileURLToPath(new URL('support/slow-count.plugin.mjs', import.meta.url));
/** Seconds between two samples, at least and at most; so many in a run otherwise. */
const [SOONEST, LATEST] = [1, 10];
const SAMPLES = 240;
/** With fewer in the second half a slope says nothing, and with fewer minutes it is what a new process is still filling. */
const ENOUGH = 30;
const LONG_ENOUGH = 10;
/** Sessions of one principal that are kept, ended ones included. */
const SESSIONS = 1_000;

/** What is sampled, and how fast it may grow in an hour: only growth that is certain to 95 % is a loss. */
const WATCHES = [
  { name: 'resident memory', key: 'resident', unit: 'MB', perHour: 30 },
  { name: 'heap after collection', key: 'heap', unit: 'MB', perHour: 10 },
  { name: 'buffers outside the heap', key: 'external', unit: 'MB', perHour: 10 },
  { name: 'open handles', key: 'handles', unit: '', perHour: 20 },
  { name: 'timers', key: 'timers', unit: '', perHour: 40 },
  { name: 'keys in Redis', key: 'keys', unit: '', perHour: 300 },
  { name: 'event-loop delay, p99', key: 'delay', unit: 'ms', perHour: 15 },
];

/** Stores that fill up to a bound reach it within the first seconds, so that whatever still grows grows without one. */
const SHORT_LIVED = {
  plugins: [PLUGIN],
  tasks: { lifetime: 20, heartbeat: 1 },
  exports: { lifetime: 60 },
};

async function begin() {
  const redis = await startRedisServer();
  const database = await startDatabase();
  const service = await startParley(
    { uri: database.url, redis: { url: redis.url }, ...SHORT_LIVED },
    { flags: ['--expose-gc', '-r', WATCHED] },
  );
  const keys = new Redis(redis.url);
  return {
    service,
    keys,
    end: async () => {
      keys.disconnect();
      await service.stop();
      await database.stop();
      await redis.close();
    },
  };
}

/** Fills the one store that takes long to reach its bound. */
async function fill(url) {
  let left = SESSIONS;
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while ((left -= 1) >= 0) {
        const client = new SessionClient(url, HEADERS);
        await client.initialize();
        await client.end();
      }
    }),
  );
}

/** What else clients do, a few times a second: each opens something that has to end. */
async function others(client, going, count) {
  while (going()) {
    const stream = await client.listen({ resourceSubscriptions: ['parse://Listing/count'] });
    const task = await client.call(
      'slow_count',
      { class_name: 'Listing', milliseconds: 700 },
      { extensions: { [TASKS]: {} } },
    );
    const ordered = await client.call('export_data', {
      class_name: 'Listing',
      delivery: 'resource',
      format: 'csv',
      columns: ['sku', 'price'],
      limit: 50,
    });
    const { path } = ordered.result?.structuredContent ?? {};
    const file = path && (await fetch(new URL(path, client.url), { headers: HEADERS }));
    if ((await file?.text())?.includes('\n')) count.exports += 1;
    const { taskId } = task.result ?? {};
    for (let status = 'working'; taskId && status === 'working';) {
      await pause(250);
      ({ status } = (await client.ask('tasks/get', { taskId })).result ?? {});
      if (status === 'completed') count.tasks += 1;
    }
    stream.close();
    if (stream.status === 200) count.streams += 1;
  }
}

const rounded = (number) => Number(number.toPrecision(4));

function judged(samples, minutes) {
  const half = samples.filter(({ second }) => second >= minutes * 30);
  const figures = [];
  const notes = [];
  const isJudged = minutes >= LONG_ENOUGH && half.length >= ENOUGH;
  for (const { name, key, unit, perHour } of WATCHES) {
    const last = half.at(-1)?.[key];
    if (last !== undefined) figures.push({ name: `${name}, last`, value: rounded(last), unit });
    if (half.length < ENOUGH) continue;
    const trend = slope(half.map((sample) => [sample.second / 3600, sample[key]]));
    figures.push({
      name: `${name}, growth that is certain to 97.5 %`,
      value: rounded(trend.low),
      unit: `${unit}/h`,
      ...(isJudged && { atMost: perHour }),
    });
    notes.push(
      `${name}: slope ${rounded(trend.slope)} ${unit}/h, between ${rounded(trend.low)} and ${rounded(trend.high)} with 95 %, ` +
        `from ${half.length} samples that count as ${Math.round(trend.independent)}.`,
    );
  }
  if (!isJudged)
    notes.push(
      `Slopes were not judged: that takes ${LONG_ENOUGH} min of load and ${ENOUGH} samples in the second half, which has ${half.length}.`,
    );
  return { figures, notes };
}

export async function run({ minutes, log, signal }) {
  const { service, keys, end } = await begin();
  const seconds = minutes * 60;
  if (minutes >= LONG_ENOUGH) await fill(service.url);
  const began = performance.now();
  const second = () => (performance.now() - began) / 1000;
  const going = () => !signal.aborted && second() < seconds;
  let refused = 0;
  const count = { requests: 0, tasks: 0, exports: 0, streams: 0 };
  const losses = [];
  const samples = [];
  const client = new ModernClient(service.url, HEADERS);
  const every = Math.min(LATEST, Math.max(SOONEST, seconds / SAMPLES));
  const looking = (async () => {
    while (going()) {
      const state = await service.ask('state');
      samples.push({ second: second(), ...state, keys: await keys.dbsize() });
      if (samples.length % 20 === 0)
        log(`${Math.round(second())} s: ${Math.round(state.resident)} MB, ${count.requests} requests`);
      await pause(every * 1000);
    }
  })();
  const load = [
    conversations(service.url, {
      going,
      asked: () => (count.requests += 1),
      failed: ({ message }) => {
        // A busy machine may let Redis be silent for longer than callers are made to wait.
        if (/ answered with (429|503)/.test(message)) refused += 1;
        else losses.push(`a conversation ended: ${message}`);
      },
    }),
    others(client, going, count),
    others(client, going, count),
  ];
  for (const each of await Promise.allSettled([...load, looking]))
    if (each.status === 'rejected')
      losses.push(`the load could not go on: ${each.reason?.message ?? each.reason}`);
  await end();
  const { figures, notes } = judged(samples, minutes);
  return {
    losses,
    figures: [
      ...Object.entries(count).map(([name, value]) => ({ name, value, unit: '', atLeast: 1 })),
      ...figures,
    ],
    series: WATCHES.map(({ name, key, unit }) => ({
      title: name,
      unit,
      lines: [{ name, points: samples.map((sample) => [rounded(sample.second), rounded(sample[key])]) }],
    })),
    notes,
  };
}
