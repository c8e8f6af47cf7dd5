// MongoDB as enterprises run it, with a login and TLS, under a mixed load while one fault after another meets it: members that step
// down, hang or are slow, connections that are cut, writes that are not confirmed, cursors that die, change streams that are lost.
import { setTimeout as pause } from 'node:timers/promises';
import * as load from './support/chaos-load.mjs';
import { as } from './support/chaos-stage.mjs';
import { ModernClient } from './support/modern-client.mjs';
import { startMongoStage } from './support/mongo-stage.mjs';
import { SeededRandom } from './support/seeded-random.mjs';

export const part = {
  title: 'A replica set with a login and TLS that steps down, hangs, is slow, and cuts connections',
  minutes: 4,
  // The start and one round of all faults take longer than a brief form may.
  brief: 0,
};

/** Milliseconds within which the service does each kind of work again after a fault. */
const RECOVERED_WITHIN = 15_000;
/** What is counted for each kind of work that the database did well. */
const WORKS = {
  reads: ['calls of sessions'],
  writes: ['writes with a key', 'writes without a key'],
  exports: ['files fetched'],
  'reads of another service': ['reads of a user who may only read'],
};

const WORK = Object.keys(WORKS);
/** Minutes in which each fault has its turn. */
const ONE_ROUND = 2;
/** What is counted besides faults, and happens in every run. */
const TRIED = [
  ...Object.values(WORKS).flat(),
  'requests with tokens',
  'tasks completed',
  'writes refused for a missing right',
];
const done = (seen, work) => WORKS[work].reduce((sum, name) => sum + (seen.counts[name] ?? 0), 0);

/** @returns the longest time in milliseconds in which the database did nothing well; lists of tools need none */
async function longestSilence(seen, going) {
  let longest = 0;
  let last = performance.now();
  let before = 0;
  while (going()) {
    const now = WORK.reduce((sum, work) => sum + done(seen, work), 0);
    longest = Math.max(longest, performance.now() - last);
    if (now > before) last = performance.now();
    before = now;
    await pause(25);
  }
  return longest;
}

/** What was changed by another program, and the subscribers. */
class Changes {
  made = [];
  quiet = false;
  watchers = [];
  #alone = 0;

  /** One change and no other amid a fault: a subscriber that is not told of it cannot learn of it from the next. */
  async alone(stage, fault, delay) {
    this.quiet = true;
    // What was changed before is told by then.
    await pause(2_000);
    const change = pause(delay).then(() => load.changeOnce(stage, this.made, `alone${(this.#alone += 1)}`));
    await Promise.all([fault(), change]);
  }

  /** Ends the quiet time, once every subscriber was told of the last change or should have been. */
  async told() {
    const { at, made } = this.made.at(-1);
    const isTold = ({ events }) => events.some((event) => event.kind === 'told' && event.at >= at);
    while (performance.now() < made + load.TOLD_WITHIN + 1_000 && !this.watchers.every(isTold))
      await pause(50);
    this.quiet = false;
  }
}

/** One fault after another in an order of the seed, each kind once in a round. @returns the longest recovery of each kind of work */
async function strike(stage, seen, changes, { going, seconds }, random, log) {
  const { faults } = stage;
  const longest = Object.fromEntries(WORK.map((work) => [work, 0]));
  let left = [];
  await pause(1_000);
  // The last fault has its time to recover as well.
  while (going() && seen.second < seconds - RECOVERED_WITHIN / 1000) {
    if (left.length === 0) left = Object.keys(faults);
    const [name] = left.splice(random.below(left.length), 1);
    if (random.chance(0.5)) await changes.alone(stage, faults[name], random.below(2_500));
    else await faults[name]();
    seen.count(name);
    const ended = performance.now();
    const before = Object.fromEntries(WORK.map((work) => [work, done(seen, work)]));
    const waiting = new Set(WORK);
    while (waiting.size > 0 && going()) {
      const took = performance.now() - ended;
      for (const work of waiting) {
        const isIdle = done(seen, work) === before[work];
        if (isIdle && took <= RECOVERED_WITHIN) continue;
        if (isIdle) seen.lose(`${work} did not succeed within ${RECOVERED_WITHIN / 1000} s after ${name}`);
        else longest[work] = Math.max(longest[work], took);
        waiting.delete(work);
      }
      await pause(50);
    }
    log(`${Math.round(seen.second)} s: ${name}, recovered in ${Math.round(performance.now() - ended)} ms`);
    if (changes.quiet) await changes.told();
    await pause(500 + random.below(2_000));
  }
  return longest;
}

/** The service whose user may only read: its writes are refused with the reason, and its reads are answered. */
async function readOnly({ reading, rows }, seen, going) {
  const client = new ModernClient(reading.url, as('writer'));
  for (let n = 0; going(); n += 1) {
    const args = { class_name: 'Item', fields: { title: `reader-${n}`, rank: n } };
    const answer = await seen.ask('a write of a user who may only read', (signal) =>
      client.call('create_object', args, { signal }),
    );
    if (answer?.good) seen.lose(`a write of a user who may only read was accepted: reader-${n}`);
    if (answer?.text.includes('does not permit this')) seen.count('writes refused for a missing right');
    const query = { class_name: 'Item', limit: 1 };
    const read = await seen.ask('a read of a user who may only read', (signal) =>
      client.call('query_class', query, { signal }),
    );
    if (read?.good) seen.count('reads of a user who may only read');
    await pause(500);
  }
  if ((await rows.collection('Item').countDocuments({ title: /^reader-/ })) > 0)
    seen.lose('a row was written by a user who may only read');
}

export async function run({ minutes, seed, log, signal }) {
  const random = new SeededRandom(seed, 'mongodb');
  const stage = await startMongoStage(log, random);
  const seen = new load.Seen(stage);
  const seconds = minutes * 60;
  const going = () => !signal.aborted && seen.second < seconds;
  const changes = new Changes();
  const companions = await load.accompany(stage, seen, changes.made);
  changes.watchers = companions.watchers;
  const [longest, silence] = await Promise.all([
    strike(stage, seen, changes, { going, seconds }, random, log),
    longestSilence(seen, going),
    ...load.doUsualWork(stage, seen, going),
    load.fetchExports(stage, seen, going),
    load.change(stage, changes.made, going, () => changes.quiet),
    readOnly(stage, seen, going),
  ]);
  await companions.end();
  await load.stopAll(stage.services, seen);
  const kept = await stage.end({ keep: seen.losses.length > 0 });
  const inSeconds = (milliseconds) => Math.round(milliseconds / 100) / 10;
  const tried = new Set(minutes >= ONE_ROUND ? [...Object.keys(stage.faults), ...TRIED] : TRIED);
  const counts = { ...Object.fromEntries([...tried].map((name) => [name, 0])), ...seen.counts };
  return {
    losses: seen.losses,
    figures: [
      { name: 'requests', value: seen.requests, unit: '' },
      ...Object.entries(counts).map(([name, value]) => ({
        name,
        value,
        unit: '',
        ...(tried.has(name) && { atLeast: 1 }),
      })),
      { name: 'longest time without a good answer of the database', value: inSeconds(silence), unit: 's' },
      ...Object.entries(longest).map(([work, value]) => ({
        name: `longest time until ${work} succeeded after a fault`,
        value: inSeconds(value),
        unit: 's',
        atMost: RECOVERED_WITHIN / 1000,
      })),
    ],
    series: [{ title: 'Answers in each second', unit: '', lines: seen.lines }],
    notes: [
      ...[...seen.answers].map(([what, count]) => `${count} × ${what}`),
      ...(kept === undefined ? [] : [`Logs and configurations of the services are in ${kept}.`]),
    ],
  };
}
