// A million frames, arguments, pipelines and configuration files that nobody meant: each gets its answer, and none an internal error.
import { readdir, readFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { configurationCases } from './support/fuzz-configurations.mjs';
import { httpFrame, stdioFrame } from './support/fuzz-frames.mjs';
import { FuzzInputs } from './support/fuzz-inputs.mjs';
import { isDue, judgeHttp, judgeLines, judgeLoad, judgeReply, minimised } from './support/fuzz-judge.mjs';
import {
  openConfigurations,
  openFuzzService,
  policyOperators,
  RawClient,
  root,
} from './support/fuzz-service.mjs';
import { SeededRandom } from './support/seeded-random.mjs';
import { casesWithin } from './support/spec-batches.mjs';

export const part = {
  title: '1,000,000 fuzzed frames, arguments, pipelines, change sets and configuration files',
  minutes: 12,
  brief: 0.3,
};

/** Cases that `minutes` are enough for on a quiet machine. */
const FULL = 1_000_000;
/** Milliseconds: an answer that takes longer, twice when asked again alone, is a loss. */
const SLOWEST = 5_000;
/** Cases of one service and its database, which writes change. */
const ROUND = 60_000;
/** Losses of one kind that are minimised; more of a kind say little more. */
const MOST_LOSSES = 12;

/**
 * The kinds, and how many of a thousand cases each has. `workers`: cases at a time. `least`: cases that are tried however slow
 * the machine is; with fewer, the share that is executed says nothing.
 */
const KINDS = {
  arguments: { share: 230, workers: 6, least: 300 },
  pipelines: { share: 200, workers: 6, least: 300 },
  http: { share: 200, workers: 8, least: 300 },
  stdio: { share: 250, workers: 6, least: 300 },
  configurations: { share: 100, workers: 1, least: 300 },
  // One after the other: there is one open set.
  sets: { share: 20, workers: 1, least: 40 },
};

export async function run({ minutes, seed, log, signal }) {
  if (!existsSync(join(root, 'dist', 'src', 'http-service.js')))
    spawnSync(process.execPath, [join(root, 'tools', 'build', 'build.mjs')], { stdio: 'inherit' });
  const fuzz = new Fuzz(seed, log, signal, performance.now() + minutes * 60_000);
  const stop = fuzz.watchProcess();
  try {
    await fuzz.run(casesWithin(FULL, minutes, part));
  } finally {
    stop();
  }
  return fuzz.report();
}

class Fuzz {
  counts = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, new Map()]));
  spent = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, 0]));
  slowest = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, 0]));
  losses = [];
  found = new Map();
  series = [];
  began = performance.now();
  /** Calls about change sets that were answered with a result, and the sets that these applied and took back. */
  ofSets = { answers: 0, applied: 0, undone: 0 };

  constructor(seed, log, signal, deadline) {
    this.seed = seed;
    this.log = log;
    this.signal = signal;
    this.deadline = deadline;
  }

  get isOver() {
    return this.signal?.aborted || performance.now() > this.deadline;
  }

  /** Whatever reaches the process itself is a loss. */
  watchProcess() {
    const take = (error) =>
      this.lose('process', `unhandled: ${error?.stack ?? error}`, { lately: this.lately });
    process.on('unhandledRejection', take).on('uncaughtException', take);
    return () => process.off('unhandledRejection', take).off('uncaughtException', take);
  }

  async run(cases) {
    this.wanted = cases;
    const operators = await policyOperators();
    const configurations = configurationCases(await configurationTexts());
    const loader = await openConfigurations();
    for (let from = 0; from < cases && (from === 0 || !this.isOver); from += ROUND) {
      const service = await openFuzzService();
      try {
        const tools = {};
        for (const agent of service.agents) {
          const { result } = await service.dispatch(agent, 'tools/list', {});
          tools[agent] = new FuzzInputs(result.tools, service.seed, operators);
        }
        const round = { service, tools, configurations, loader };
        const wanted = Math.min(ROUND, cases - from);
        const ways = this.ways(round);
        for (const [kind, { share, least }] of Object.entries(KINDS)) {
          const first = Math.round((from * share) / 1_000);
          const count = Math.max(least, Math.round((wanted * share) / 1_000));
          // A share of the time that is left, so that every kind is tried even where the time does not reach.
          await this.many(
            kind,
            ways[kind],
            first,
            count,
            service.log,
            this.shareOf(kind, wanted, cases - from),
          );
        }
      } finally {
        for (const what of Object.keys(this.ofSets)) this.ofSets[what] += service.sets[what];
        await service.close();
      }
      this.log(
        `${this.total} cases, ${this.losses.length} losses, ${Math.round((performance.now() - this.began) / 1000)} s`,
      );
    }
    await loader.close();
  }

  /** When a kind has to end in this round. */
  shareOf(kind, wanted, left) {
    const now = performance.now();
    const kinds = Object.keys(KINDS);
    const rest = kinds.slice(kinds.indexOf(kind)).reduce((sum, one) => sum + KINDS[one].share, 0);
    const laterRounds = (left - wanted) / left;
    return now + ((this.deadline - now) * (1 - laterRounds) * KINDS[kind].share) / rest;
  }

  get total() {
    return Object.values(this.counts).reduce(
      (sum, counts) => sum + [...counts.values()].reduce((all, one) => all + one, 0),
      0,
    );
  }

  /** How each kind is made and tried: `make` a case as JSON, `try` it. */
  ways({ service, tools, configurations, loader }) {
    const agentOf = (random) => random.pick(service.agents);
    const call = (make) => ({
      make: (random) => {
        const agent = agentOf(random);
        return { agent, params: make(random, agent) };
      },
      open:
        () =>
        async ({ agent, params }) =>
          judgeReply(await service.dispatch(agent, 'tools/call', params), JSON.stringify(params)),
    });
    return {
      arguments: call((random, agent) => tools[agent].call(random)),
      pipelines: call((random, agent) => tools[agent].query(random)),
      http: {
        make: (random, number) => httpFrame(random, tools[agentOf(random)], number, service.keys),
        open: () => {
          const client = new RawClient(service.port, service.sessions);
          const ask = async (frame) =>
            judgeHttp(frame, await client.send(frame, frame.framed ? SLOWEST * 3 : 400));
          return Object.assign(ask, { end: () => client.end() });
        },
      },
      stdio: {
        make: (random, number) => stdioFrame(random, tools.writer, number),
        open: () => {
          const conversation = service.converse();
          return async ({ line }) => {
            const bytes = Buffer.from(line, 'base64');
            return judgeLines(bytes, await conversation.send(bytes, isDue(bytes), SLOWEST * 3));
          };
        },
      },
      sets: {
        make: (random) => ({
          writes: Array.from({ length: 1 + random.below(6) }, () => tools.proposer.write(random)),
        }),
        open: () => (given) => applyAndUndo(service, given),
      },
      configurations: {
        make: (random) => configurations(random),
        open:
          () =>
          async ({ text }) =>
            judgeLoad(loader.load(text), text),
      },
    };
  }

  async many(kind, { make, open }, first, count, kept, until) {
    const began = performance.now();
    let next = first;
    const { workers, least } = KINDS[kind];
    const isDone = () =>
      next >= first + count || (performance.now() >= until && (first > 0 || next >= least));
    const work = async () => {
      const ask = open();
      while (!isDone() && !this.signal?.aborted) {
        const number = (next += 1);
        const given = make(new SeededRandom(this.seed, kind, number), number);
        this.lately = { kind, number };
        const started = performance.now();
        const judged = await this.attempt(ask, given);
        const took = performance.now() - started;
        let { fault } = judged;
        if (!fault && took > SLOWEST && (await this.isSlow(open(), given)))
          fault = `slower than ${SLOWEST} ms`;
        this.slowest[kind] = Math.max(this.slowest[kind], took);
        this.counts[kind].set(judged.outcome, (this.counts[kind].get(judged.outcome) ?? 0) + 1);
        if (fault) await this.examine(kind, number, given, fault, open, kept);
        // Configurations are loaded without a pause: the rest of the process gets a turn.
        if (number % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      ask.end?.();
    };
    await Promise.all(Array.from({ length: workers }, work));
    this.spent[kind] += performance.now() - began;
  }

  async attempt(ask, given) {
    try {
      return await ask(given);
    } catch (error) {
      const text = error instanceof Error ? error.stack : String(error);
      return { outcome: 'thrown', fault: `thrown: ${text?.slice(0, 800)}` };
    }
  }

  async isSlow(ask, given) {
    for (let time = 0; time < 2; time += 1) {
      const started = performance.now();
      await this.attempt(ask, given);
      if (performance.now() - started < SLOWEST) return false;
    }
    return true;
  }

  /** Tries a fault again alone, makes its case small, and prints it so that it can become a named test. */
  async examine(kind, number, given, fault, open, kept) {
    const family = fault.replaceAll(/\d+/g, '0').slice(0, 90);
    const known = this.found.get(family) ?? 0;
    this.found.set(family, known + 1);
    if (known >= 3 || this.losses.length >= MOST_LOSSES) return;
    const lines = kept.lines.slice(-3);
    const ask = open();
    const again = await this.attempt(ask, given);
    const repeats = again.fault?.replaceAll(/\d+/g, '0').slice(0, 90) === family;
    // What took its time once, on a machine with other work, and not again, is no fault of the input.
    if (!repeats && /^(?:no answer|a time-out)/.test(fault)) return;
    const { part: partOf, whole } = REDUCED[kind];
    const isSame = async (one) =>
      (await this.attempt(ask, whole(given, one))).fault?.replaceAll(/\d+/g, '0').slice(0, 90) === family;
    const small = repeats ? whole(given, await minimised(partOf(given), isSame)) : given;
    this.lose(kind, fault, { number, repeats, case: { kind, ...small }, log: lines });
  }

  lose(kind, fault, about) {
    const text = `${kind}: ${fault} (seed ${this.seed}) ${JSON.stringify(about)}`;
    if (this.losses.length < MOST_LOSSES * 2) this.losses.push(text);
    this.log(`LOSS ${text.slice(0, 6_000)}`);
  }

  report() {
    const figures = [];
    for (const [kind, counts] of Object.entries(this.counts)) {
      const total = [...counts.values()].reduce((sum, one) => sum + one, 0);
      figures.push({ name: `${kind}: cases`, value: total, unit: 'cases', atLeast: 1 });
      figures.push({
        name: `${kind}: cases per second`,
        value: Math.round((total / this.spent[kind]) * 1000),
        unit: '1/s',
      });
      figures.push({ name: `${kind}: slowest`, value: Math.round(this.slowest[kind]), unit: 'ms' });
      // A fuzz that is refused at the entrance tries nothing behind it.
      figures.push({
        name: `${kind}: share that was executed`,
        value: Number(((counts.get('ok') ?? 0) / Math.max(total, 1)).toFixed(3)),
        unit: 'share',
        atLeast: LEAST_EXECUTED[kind],
      });
      for (const [outcome, count] of [...counts].sort(([, a], [, b]) => b - a))
        figures.push({ name: `${kind}: ${outcome}`, value: count, unit: 'cases' });
    }
    const several = [...this.found]
      .filter(([, count]) => count > 1)
      .map(([family, count]) => `${count} times: ${family}`);
    return {
      losses: this.losses,
      figures: [
        { name: 'cases', value: this.total, unit: 'cases', atLeast: 1 },
        { name: 'results about change sets', value: this.ofSets.answers, unit: 'cases', atLeast: 1 },
        { name: 'change sets that were applied', value: this.ofSets.applied, unit: 'sets', atLeast: 1 },
        { name: 'change sets that were taken back', value: this.ofSets.undone, unit: 'sets', atLeast: 1 },
        ...figures,
      ],
      series: [],
      notes: [
        `Seed ${this.seed}; a case is made from the seed, its kind and its number alone.`,
        ...(this.total < this.wanted
          ? [`${this.wanted} cases were wanted; the time permitted ${this.total}.`]
          : []),
        ...several,
      ],
    };
  }
}

/** Proposes writes, applies what was proposed and takes it back, and judges each answer: of what ends it, the outcome. */
async function applyAndUndo(service, given) {
  /** @type {{ outcome: string, fault: string | null }} */
  let judged = { outcome: 'nothing proposed', fault: null };
  const ask = async (name, args) => {
    const reply = await service.dispatch('proposer', 'tools/call', { name, arguments: args });
    judged = judgeReply(reply, JSON.stringify(given));
    return reply.result?.structuredContent;
  };
  let set;
  for (const { name, arguments: args } of given.writes) {
    set = (await ask(name, args))?.change_set ?? set;
    if (judged.fault) return judged;
  }
  if (set === undefined) return judged;
  const { applied } = (await ask('submit_changes', { title: 'fuzz', reason: 'fuzz' })) ?? {};
  if (judged.fault) return judged;
  const { outcome } = judged;
  await ask(applied ? 'undo_changes' : 'discard_changes', { change_set: set });
  return applied || judged.fault ? judged : { ...judged, outcome };
}

const decoded = (text) => Buffer.from(text, 'base64').toString('utf8');
const encoded = (text) => Buffer.from(String(text)).toString('base64');

/** What of a case is made smaller, by kind. */
const REDUCED = {
  arguments: { part: ({ params }) => params, whole: (given, params) => ({ ...given, params }) },
  pipelines: { part: ({ params }) => params, whole: (given, params) => ({ ...given, params }) },
  http: {
    part: ({ headers, body }) => [headers, decoded(body)],
    whole: (given, [headers = [], body = '']) => ({
      ...given,
      headers: Array.isArray(headers) ? headers : [],
      body: encoded(body),
    }),
  },
  stdio: { part: ({ line }) => decoded(line), whole: (_, line) => ({ line: encoded(line) }) },
  sets: { part: ({ writes }) => writes, whole: (_, writes) => ({ writes: [writes].flat() }) },
  configurations: {
    part: ({ text }) => text.split('\n'),
    whole: (_, lines) => ({ text: [lines].flat().join('\n') }),
  },
};

const LEAST_EXECUTED = {
  arguments: 0.15,
  pipelines: 0.1,
  http: 0.05,
  stdio: 0.1,
  sets: 0.05,
  configurations: 0.03,
};

/** Every configuration of the project, and those that the reference shows. */
async function configurationTexts() {
  const files = ['parley.yaml', 'test/conformance/parley.yaml'];
  for (const name of await readdir(join(root, 'examples'))) {
    const path = join('examples', name, 'parley.yaml');
    if (existsSync(join(root, path))) files.push(path);
  }
  const texts = await Promise.all(files.map((path) => readFile(join(root, path), 'utf8')));
  const reference = await readFile(join(root, 'docs', 'reference', 'configuration.md'), 'utf8');
  const shown = [...reference.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, text]) => text);
  return [...texts, ...shown];
}
