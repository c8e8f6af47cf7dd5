// Three replicas behind the nginx that operators are advised to use, under mixed load, while replicas are killed, Redis fails over, the
// database steps down, keys of tokens change and policies are reloaded. What was accepted must have happened once, and what was open
// must go on.
import { setTimeout as pause } from 'node:timers/promises';
import * as load from './support/chaos-load.mjs';
import { startStage } from './support/chaos-stage.mjs';
import { failOver, repeatedly, stepDown } from './support/faults.mjs';

export const part = {
  title: 'Three replicas behind nginx, one killed every five seconds',
  minutes: 5,
  brief: 0.25,
};

/** Seconds between two faults of a kind, where there is time for them. */
const EVERY = { kill: 5, reload: 7, failOver: 75, stepDown: 45, rotation: 45 };
/** Seconds that a key is shown before it signs. */
const ANNOUNCED = 32;
const ENOUGH_CHANGES = 60;

/** Every fault at its time; in a short run each comes once all the same. */
function faults(stage, seen, log, going, seconds) {
  const within = (every) => Math.min(every, seconds / 3);
  const { replicas, redis, admin, issuer } = stage;
  /** @type {Record<string, [first: number, every: number, act: (turn: number) => unknown]>} */
  const kinds = {
    kills: [within(EVERY.kill), within(EVERY.kill), (turn) => stage.kill(turn)],
    reloads: [2, EVERY.reload, (turn) => replicas.forEach((replica) => replica.reload(turn + 1))],
    'Redis fail-overs': [
      seconds / 3,
      EVERY.failOver,
      async (turn) => {
        const taken = await failOver(redis, turn % 2);
        log(`Redis: all Sentinels named the other server after ${taken.toFixed(1)} s`);
      },
    ],
    'step-downs of the database': [seconds * 0.6, EVERY.stepDown, () => stepDown(admin, 1_500)],
    // A key signs once every replica has had the chance to read it: unknown ones are asked for every 30 s at most.
    'rotations of keys': [
      2,
      EVERY.rotation,
      async () => {
        await issuer.announce();
        for (let left = ANNOUNCED; left > 0 && going(); left -= 1) await pause(1_000);
        if (!going()) return false;
        issuer.rotate();
        return true;
      },
    ],
  };
  return Object.entries(kinds).map(([name, [first, every, act]]) =>
    repeatedly({ first, every, going }, async (turn) => {
      if ((await act(turn)) !== false) seen.count(name);
    }),
  );
}

async function checkAudit(stage, seen) {
  const { code, text } = await stage.verifyAudit();
  if (code !== 0) seen.lose(`the audit chain is not whole: ${text.trim().slice(0, 600)}`);
  const records = await stage.auditRecords();
  const writes = records.filter(
    ({ tool, success, change_set: set }) => tool === 'create_object' && success && set === undefined,
  );
  const accepted = [...seen.written.values()].filter((one) => one.accepted).length;
  if (writes.length < accepted)
    seen.lose(`${accepted} writes were accepted, and only ${writes.length} are in the audit records`);
  return { records: records.length, text: text.trim().split('\n').at(-1) };
}

/** A subscriber whose stream ends again and again learns of everything: most of it must reach open streams all the same. */
function toldShare(counts, name) {
  const open = counts[`changes notified on an open stream, subscriber ${name}`] ?? 0;
  const back = counts[`changes learned by coming back, subscriber ${name}`] ?? 0;
  const value = open + back === 0 ? 0 : Math.round((open / (open + back)) * 100);
  // A few changes, most of them amid faults, say nothing.
  const bound = open + back < ENOUGH_CHANGES ? {} : { atLeast: 50 };
  return { name: `changes notified on an open stream, subscriber ${name}`, value, unit: '%', ...bound };
}

/** What every run has, however short. */
const SOON = ['kills', 'requests with tokens'];
/** Faults and work of a run of a minute or more: without one of them it has tried less than it says. */
const TRIED = [
  'kills',
  'reloads',
  'Redis fail-overs',
  'step-downs of the database',
  'calls of sessions',
  'requests with tokens',
  'writes with a key',
  'writes without a key',
  'cases approved',
  'change sets applied',
  'change sets taken back',
  'tasks completed',
  'files fetched',
  'streams opened',
];

export const run = (options) => chaos(options);

/** @param setting what is put under load: three replicas without one */
export async function chaos({ minutes, log, signal }, setting) {
  const stage = await startStage(log, setting);
  const seen = new load.Seen(stage);
  const seconds = minutes * 60;
  const going = () => !signal.aborted && seen.second < seconds;
  const changes = [];
  const companions = await load.accompany(stage, seen, changes);
  const work = [
    ...load.doUsualWork(stage, seen, going),
    load.converse(stage, seen, going),
    load.runTasks(stage, seen, going),
    load.change(stage, changes, going),
  ];
  const telling = setInterval(
    () => log(`${Math.round(seen.second)} s: ${JSON.stringify(seen.counts)}`),
    20_000,
  );
  await Promise.all([...faults(stage, seen, log, going, seconds), ...work]);
  clearInterval(telling);
  log('the load is over; answers are compared with the stored rows');
  await companions.end();
  await load.stopAll(stage.replicas, seen);
  const audit = await checkAudit(stage, seen);
  const kept = await stage.end({ keep: seen.losses.length > 0 });
  return {
    losses: seen.losses,
    figures: [
      ...companions.watchers.map(({ name }) => toldShare(seen.counts, name)),
      ...TRIED.map((name) => ({
        name,
        value: seen.counts[name] ?? 0,
        unit: '',
        ...((minutes >= 1 || SOON.includes(name)) && { atLeast: 1 }),
      })),
      ...Object.entries(seen.counts)
        .filter(([name]) => !TRIED.includes(name))
        .map(([name, value]) => ({ name, value, unit: '' })),
      {
        name: 'longest time without a good answer',
        value: Math.round(seen.longestGap / 100) / 10,
        unit: 's',
      },
      { name: 'audit records', value: audit.records, unit: '' },
    ],
    series: [{ title: 'Answers in each second', unit: '', lines: seen.lines }],
    notes: [
      `parley audit verify: ${audit.text}`,
      ...[...seen.answers].map(([what, count]) => `${count} × ${what}`),
      ...(kept === undefined
        ? []
        : [`Logs, configurations and audit records of the replicas are in ${kept}.`]),
    ],
  };
}
