import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

const root = new URL('../../../', import.meta.url);
const command = fileURLToPath(new URL('tools/capacity.mjs', root));

type Numbers = Record<string, number>;
interface Resource {
  readonly name: string;
  readonly need: number;
  readonly has: number | null;
  readonly use: number | null;
  readonly next: string;
  readonly lastsUntil: number | null;
}
interface Plan {
  readonly replicas: number;
  readonly fewestReplicas: number | null;
  readonly total: Numbers;
  readonly resources: readonly Resource[];
  readonly short: readonly string[];
  readonly first: Resource | null;
  readonly firstBeside: Resource | null;
}
interface Model {
  readonly DEFAULTS: { readonly demand: object; readonly supply: object };
  plan(measured: unknown, demand: object, supply: object): Plan;
}

const { DEFAULTS, plan } = (await import(new URL('tools/capacity/model.mjs', root).href)) as Model;
const text = (path: string) => readFileSync(new URL(path, root), 'utf8');
const measured = JSON.parse(text('tools/capacity/measured.json')) as {
  kinds: { name: string; title: string; cpu: number }[];
  checked: { rows: { replicas: number; rate: number; cpu: number; cpuPredicted: number }[] };
};
const KINDS = measured.kinds.map(({ name }) => name);

const planned = (demand: object = {}, supply: object = {}) =>
  plan(measured, { ...DEFAULTS.demand, ...demand }, { ...DEFAULTS.supply, ...supply });

const run = (...args: string[]) => spawnSync(process.execPath, [command, ...args], { encoding: 'utf8' });

const load = fc.record({
  agents: fc.integer({ min: 1, max: 20_000 }),
  callsPerSecond: fc.double({ min: 0, max: 20_000, noNaN: true }),
  sessions: fc.integer({ min: 0, max: 100_000 }),
  streams: fc.integer({ min: 0, max: 100_000 }),
  subscriptions: fc.integer({ min: 0, max: 10_000 }),
  changesPerSecond: fc.double({ min: 0, max: 10, noNaN: true }),
  definitions: fc.integer({ min: 1, max: 100 }),
  classes: fc.integer({ min: 0, max: 100 }),
  mix: fc
    .array(fc.tuple(fc.constantFrom(...KINDS), fc.integer({ min: 1, max: 9 })), {
      minLength: 1,
      maxLength: 6,
    })
    .map((entries) => Object.fromEntries(entries)),
});
type Load = typeof load extends fc.Arbitrary<infer T> ? T : never;

const GROWING = [
  'callsPerSecond',
  'sessions',
  'streams',
  'subscriptions',
  'changesPerSecond',
  'classes',
] as const satisfies readonly (keyof Load)[];

describe('the capacity model', () => {
  it.each(GROWING)('never needs fewer replicas for twice the %s', (name) => {
    fc.assert(
      fc.property(load, (demand) => {
        const [one, two] = [planned(demand), planned({ ...demand, [name]: demand[name] * 2 })];
        expect(two.fewestReplicas ?? Infinity).toBeGreaterThanOrEqual(one.fewestReplicas ?? Infinity);
      }),
    );
  });

  it('never leaves short what more replicas help, where it chooses their number', () => {
    fc.assert(
      fc.property(load, (demand) => {
        const { fewestReplicas, resources } = planned(demand);
        const short = resources.filter(
          (one) => (one as Resource & { scales: boolean }).scales && Number(one.use) > 1,
        );
        if (fewestReplicas !== null) expect(short).toEqual([]);
        else expect(short).not.toEqual([]);
      }),
    );
  });

  it('chooses the fewest: with one less, something is short', () => {
    fc.assert(
      fc.property(load, (demand) => {
        const { fewestReplicas, short } = planned(demand);
        if (fewestReplicas === null || fewestReplicas === 1) return;
        expect(planned(demand, { replicas: fewestReplicas - 1 }).short.length).toBeGreaterThan(short.length);
      }),
    );
  });

  it('names as first what is short by most, and else what ends first', () => {
    fc.assert(
      fc.property(load, fc.integer({ min: 1, max: 20 }), (demand, replicas) => {
        const { first, short, resources } = planned(demand, { replicas });
        const judged = resources.filter(({ use }) => use !== null);
        if (short.length > 0) {
          expect(first?.use).toBe(Math.max(...judged.map(({ use }) => Number(use))));
        } else {
          const ends = judged.map(({ lastsUntil }) => Number(lastsUntil)).filter(Number.isFinite);
          expect(first?.lastsUntil ?? Infinity).toBe(Math.min(Infinity, ...ends));
        }
      }),
    );
  });

  it.each<[string, object, object]>([
    ['CPU of a replica', { callsPerSecond: 5000, agents: 10_000 }, { replicas: 1, redisPrimaries: 100 }],
    ['memory of a replica', { definitions: 10_000, agents: 10_000 }, { replicas: 4 }],
    ['listening streams of a replica', { streams: 101 }, { replicas: 1 }],
    ['connections of a replica', { agents: 30_000, callsPerSecond: 1 }, { replicas: 1 }],
    ['tasks at once of a replica', { callsPerSecond: 5, mix: { task: 1 } }, { replicas: 1 }],
    [
      'CPU of a Redis primary',
      { callsPerSecond: 2_000_000, agents: 1e8 },
      { replicas: 10_000, connectionsPerReplica: 1e9, replicaMemory: 1e9, network: 1e9, redisMemory: 1e9 },
    ],
    ['memory of a Redis primary', { sessions: 10_000_000, agents: 10_000 }, {}],
    ['database commands of a shard', {}, { databaseCommands: 10 }],
    ['calls of an agent', { agents: 10, callsPerSecond: 20 }, { replicas: 1 }],
    ['sessions of an agent', { agents: 1, sessions: 1001, callsPerSecond: 1 }, {}],
  ])('says that %s is first', (name, demand, supply) => {
    expect(planned(demand, supply)).toMatchObject({
      first: { name },
      short: expect.arrayContaining([name]) as unknown,
    });
  });

  it('does not judge what was not given', () => {
    const one = planned().resources.find(({ name }) => name === 'database commands of a shard');
    expect(one).toMatchObject({ has: null, use: null, lastsUntil: null });
  });

  it('needs of a shard what all need, divided by the shards', () => {
    const needOf = (shards: number) =>
      planned({}, { shards, databaseCommands: 1000 }).resources.find(({ name }) => name.includes('shard'))
        ?.need ?? 0;
    expect(needOf(4)).toBeCloseTo(needOf(1) / 4);
  });

  it('keeps the queue of tasks on one primary of a cluster', () => {
    const needOf = (redisPrimaries: number) =>
      planned({ mix: { task: 1 } }, { redisPrimaries }).resources.find(
        ({ name }) => name === 'CPU of a Redis primary',
      )?.need;
    expect(needOf(10)).toBe(needOf(1));
  });
});

describe('npm run capacity', () => {
  it('prints what is needed and what is short first', () => {
    const { status, stdout, stderr } = run(
      '--agents',
      '10000',
      '--tenants',
      '1000',
      '--calls-per-second',
      '500',
    );
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^\d+ replicas? or processe?s?/);
    expect(stdout).toMatch(/(First|Short of): .+\. Then: .+\./);
    expect(stdout).toContain('Measured on ');
  });

  it('says when no number of replicas suffices', () => {
    const { stdout } = run('--agents', '1000000000', '--calls-per-second', '1e9');
    expect(stdout).toMatch(/^No number of replicas up to 10,000 suffices\.\n1 replica /);
  });

  it('computes numbers with the largest that it accepts', () => {
    const most = Object.keys({ ...DEFAULTS.demand, ...DEFAULTS.supply })
      .filter((key) => !['mix', 'busy', 'replicas'].includes(key))
      .flatMap((key) => [`--${key.replaceAll(/[A-Z]/g, (sign) => `-${sign.toLowerCase()}`)}`, '1e12']);
    const { status, stdout } = run(...most);
    expect(status).toBe(0);
    expect(stdout).not.toMatch(/NaN|Infinity|∞/);
  });

  it('prints the plan as JSON', () => {
    const { status, stdout } = run('--json', '--calls-per-second', '20', '--mix', 'query_class=1');
    expect(status).toBe(0);
    const { plan: printed, demand } = JSON.parse(stdout) as { plan: Plan; demand: object };
    expect(demand).toMatchObject({ callsPerSecond: 20, mix: { query_class: 1 } });
    expect(printed.first?.name).toEqual(expect.any(String));
  });

  it.each([
    [['--agent', '5'], "Unknown option '--agent'"],
    [['--agents', '0'], '--agents must be a whole number of at least 1'],
    [['--agents', '1.5'], '--agents must be a whole number'],
    [['--agents'], '--agents'],
    [['--calls-per-second', 'many'], "must be a number of at least 0, not 'many'"],
    [['--calls-per-second', 'Infinity'], 'must be a number of at least 0'],
    [['--calls-per-second', '1e308'], '--calls-per-second must be at most 1000000000000'],
    [['--busy', '2'], '--busy must be at most 1'],
    [['--mix', 'query_class=1e308,count_objects=1e308'], 'at least 0 and at most 1000000000000'],
    [['--mix', 'query=1'], "there is no kind 'query'; there are initialize"],
    [['--mix', 'query_class'], 'write query_class=<weight>'],
    [['--mix', 'query_class=0'], 'needs a weight above 0'],
    [['--mix', 'query_class=1,query_class=2'], 'twice'],
    [['10000'], '10000'],
  ])('refuses %j in one line, with 2', (args, sentence) => {
    const { status, stdout, stderr } = run(...args);
    expect([status, stdout, stderr.trimEnd().split('\n').length]).toEqual([2, '', 1]);
    expect(stderr).toContain(sentence);
  });

  it('lists every option that the page names, and the page every option', () => {
    const help = new Set(run('--help').stdout.match(/--[a-z][a-z-]+/g));
    const page = new Set(
      text('docs/operations/scale.md')
        .match(/`--[a-z][a-z-]+/g)
        ?.map((name) => name.slice(1)),
    );
    for (const name of page) if (name !== '--check' && name !== '--brief') expect(help).toContain(name);
    for (const name of ['--mix', '--busy', '--shards', '--redis-primaries', '--database-commands', '--json'])
      expect(page).toContain(name);
  });

  it('computes with the figures that the page shows', () => {
    const page = text('docs/operations/scale.md');
    const shown = (value: number) => Math.round(value).toLocaleString('en-US');
    for (const { title, cpu } of measured.kinds) expect(page).toContain(`| ${title} | ${shown(cpu)} |`);
    for (const { replicas, rate, cpu, cpuPredicted } of measured.checked.rows)
      expect(page).toMatch(
        new RegExp(`\\| ${replicas} \\| ${rate}, [\\d.]+ \\| ${shown(cpu)}, ${shown(cpuPredicted)} `),
      );
  });
});
