// `npm run bench -- --quick`: what a call costs against a bare handler in the same run, and a call of a plain class against one of a
// Parse class, compared with the ratios that were recorded last (recorded.json). Fails when one fell by more than 20 %, or all of
// the bare handler together by more than 15 %; on a busy machine only when all together fell by more than 22 %.
// `--record` writes the ratios of this run down; `--slowed 0.3` makes the service that much slower, to see that it is noticed.
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { interleaved, median } from './load.mjs';
import { root } from './processes.mjs';
import {
  copyPlain,
  HEADERS,
  PLAIN_WORKS,
  prove,
  provePlain,
  startBare,
  startDatabase,
  startParley,
  THOUSAND,
  WORKS,
} from './works.mjs';

const { values } = parseArgs({
  options: { record: { type: 'boolean' }, slowed: { type: 'string' } },
});
/** What may be lost of one ratio, and of all of them together: noise falls on one, a slower path of calls on all. */
const FALL = 0.8;
const FALL_OF_ALL = 0.85;
/** With more than twice as much to do as it has cores, the machine makes single ratios worse: then only all together decide. */
const BUSY = 2 * cpus().length;
const FALL_WHEN_BUSY = 0.78;
/** From here on the record says too little about what there is to lose. */
const GAIN = 1.25;
const ROUNDS = 16;
const COUNT = 100;
/** For one work: six of them, twice at most, and warming stay within two minutes. */
const SECONDS = 5;
/** Before each work. What is common to all works is warm from the first one on, which takes longer. */
const WARM_UP = 400;
const FIRST_WARM_UP = 2000;
const WARM_UP_OF_ANOTHER = 6000;

const file = join(root, 'test/bench/recorded.json');
/** Processors differ by more than a path that became slower: each is compared with itself, an unknown one with the first. */
const records = JSON.parse(readFileSync(file, 'utf8'));
const processor = cpus()[0].model.trim();
const recorded = records[processor] ?? Object.values(records)[0];
/** @type {(import('./works.mjs').Work & { count: number, warmUp: number, fast?: boolean, of?: string })[]} */
const WORK = [
  ...WORKS.map((work, at) => ({
    ...work,
    count: COUNT * (work.count ?? 1),
    warmUp: at === 0 ? FIRST_WARM_UP : WARM_UP,
  })),
  { ...THOUSAND, count: 40, warmUp: 200 },
  {
    ...WORKS[0],
    name: 'query_class, 10 rows, fastReads',
    fast: true,
    count: COUNT,
    // Nothing of its process is warm.
    warmUp: WARM_UP_OF_ANOTHER,
  },
  // Last, so that the works of the Parse classes are measured in a service that has read nothing else. Not part of what is
  // judged of all together: a slower path of calls makes both classes slower and leaves this ratio as it was.
  { ...PLAIN_WORKS[0], of: 'a Parse class', count: COUNT, warmUp: WARM_UP },
];

async function startSides(uri) {
  /** @type {Record<string, string>} */
  const env = values.slowed
    ? { BENCH_SLOWED: values.slowed, NODE_OPTIONS: `-r ${join(root, 'test/bench/slowed.cjs')}` }
    : {};
  const service = await startParley({ uri, plain: true }, { env });
  const fast = await startParley({ uri, fastReads: true }, { env });
  const bare = await startBare(service, uri);
  for (const work of WORK)
    await (work.parse ? provePlain(service, work) : prove(work.fast ? fast : service, bare, work));
  return { service, fast, bare };
}

/** @returns for each work its ratios, one for each round */
async function measured(uri) {
  const { service, fast, bare } = await startSides(uri);
  const pairs = WORK.map(({ own, bare: base, parse, fast: isFast, count, warmUp }) => ({
    count,
    warmUp,
    candidates: [
      { ...(isFast ? fast : service), body: own, headers: HEADERS },
      parse ? { ...service, body: parse, headers: HEADERS } : { ...bare, body: base },
    ],
  }));
  const figures = await interleaved(pairs, { rounds: ROUNDS, seconds: SECONDS });
  await Promise.all([service.stop(), fast.stop(), bare.stop()]);
  return figures.map(([own, base]) => base.map((cpu, round) => cpu / own[round]));
}

/** What the median is at most, with a probability of 97 %: a few rounds on a busy machine say little about one work. */
function atMost(rounds) {
  const sorted = rounds.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length / 2 + Math.sqrt(sorted.length)))];
}

/** Each work against its record, and all together. */
function judged(ratios) {
  const lines = WORK.map(({ name, of = 'bare' }, at) => {
    const ratio = median(ratios[at]);
    const before = recorded.ratios[name] ?? ratio;
    return { name, of, ratio, before, kept: ratio / before, atBest: atMost(ratios[at]) / before };
  });
  const beside = lines.filter(({ of }) => of === 'bare');
  const kept = Math.exp(beside.reduce((sum, line) => sum + Math.log(line.kept), 0) / beside.length);
  const busy = loadavg()[0] > BUSY;
  const fell = busy ? kept < FALL_WHEN_BUSY : kept < FALL_OF_ALL || lines.some(({ atBest }) => atBest < FALL);
  return { lines, kept, fell, limit: busy ? FALL_WHEN_BUSY : FALL_OF_ALL };
}

const began = performance.now();
const database = await startDatabase();
await copyPlain(database.url);
let ratios = await measured(database.url);
let result = judged(ratios);
if (result.fell && !values.record) {
  console.log('seems to have fallen: once more with new processes');
  const again = await measured(database.url);
  ratios = ratios.map((rounds, at) => [...rounds, ...again[at]]);
  result = judged(ratios);
}
await database.stop();

const width = Math.max(...WORK.map(({ name }) => name.length));
for (const { name, of, ratio, before, kept, atBest } of result.lines) {
  const said = atBest < FALL ? 'FELL' : kept > GAIN ? 'better: record it with --record' : 'held';
  console.log(
    `${name.padEnd(width)}  ${ratio.toFixed(3)} of ${of}  recorded ${before.toFixed(3)}  ${kept.toFixed(2)}  ${said}`,
  );
}
console.log(
  `all together ${result.kept.toFixed(2)} of what was recorded; ${((performance.now() - began) / 1000).toFixed(0)} s, ` +
    `Node ${process.version}, ${cpus().length} × ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)}`,
);
if (values.record) {
  const kept = Object.fromEntries(result.lines.map(({ name, ratio }) => [name, Number(ratio.toFixed(3))]));
  const own = { node: process.version, ratios: kept };
  writeFileSync(file, `${JSON.stringify({ ...records, [processor]: own }, null, 2)}\n`);
} else if (result.fell) {
  console.log(
    `FELL: one by more than ${percent(FALL)}, or all together by more than ${percent(result.limit)}`,
  );
  process.exitCode = 1;
}

function percent(kept) {
  return `${Math.round((1 - kept) * 100)} %`;
}
