import fc from 'fast-check';
import { firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { AuditRecord } from '#audit';
import { ProcessMessageBus } from '#state';
import { Bucket, CallStatistics } from './call-statistics.js';
import { Overviews } from './overview.js';

const START = Date.UTC(2026, 0, 1, 12);

const call = (members: Partial<AuditRecord> = {}): AuditRecord => ({
  at: new Date(START).toISOString(),
  tool: 'query_class',
  args_keys: [],
  auth_type: 'master_key',
  using_master_key: true,
  permissions: 'readonly',
  agent_id: 'id',
  agent_depth: 0,
  agent_name: 'analyst',
  principal: 'p',
  policy_version: 'v',
  success: true,
  duration_ms: 10,
  ...members,
});

function replicaOn(bus: ProcessMessageBus, replica: string, clock: { now: number }, timeout = 20) {
  const statistics = new CallStatistics(() => clock.now);
  const overviews = new Overviews(statistics, bus, {
    replica,
    name: `host-${replica}`,
    reach: 'replicas',
    now: () => clock.now,
    settings: { timeout, kept: 0 },
  });
  return { statistics, overviews };
}

describe('the overview of calls', () => {
  it('has every bucket of its window, oldest first, and zeros where nothing was', async () => {
    const clock = { now: START };
    const { statistics, overviews } = replicaOn(new ProcessMessageBus(), 'a', clock);
    statistics.record(call({ rows: 5, result_size: 400, est_input_tokens: 100, class_name: 'Post' }));
    clock.now += 60_000;
    statistics.record(call({ success: false, gate: 'class', duration_ms: 1 }));
    const overview = await overviews.read('1h');
    expect(overview.buckets).toHaveLength(60);
    expect(overview.totals).toMatchObject({ calls: 2, refused: 1, rows: 5, result_bytes: 400, tokens: 100 });
    expect(overview.gates).toEqual([{ name: 'class', refused: 1 }]);
    expect(overview.classes).toEqual([{ name: 'Post', calls: 1, refused: 0 }]);
    expect(overview.buckets.slice(-2)).toMatchObject([
      { calls: 1, refused: 0, rows: 5, gates: {}, agents: { analyst: 1 } },
      { calls: 1, refused: 1, gates: { class: 1 }, refused_agents: { analyst: 1 } },
    ]);
    expect(overview.buckets[0]).toMatchObject({ at: '2026-01-01T11:02:00.000Z', calls: 0, p50_ms: null });
  });

  it('forgets what is older than its window', async () => {
    const clock = { now: START };
    const { statistics, overviews } = replicaOn(new ProcessMessageBus(), 'a', clock);
    statistics.record(call());
    clock.now += 3_600_000;
    expect((await overviews.read('1h')).totals).toMatchObject({ calls: 0, p50_ms: null });
    expect((await overviews.read('24h')).totals).toMatchObject({ calls: 1 });
  });

  it('sums the replicas, and says which did not answer', async () => {
    const bus = new ProcessMessageBus();
    const clock = { now: START };
    const [one, two] = [replicaOn(bus, 'a', clock, 1_000), replicaOn(bus, 'b', clock)];
    one.statistics.record(call({ class_name: 'Post' }));
    two.statistics.record(call({ agent_name: 'writer', class_name: 'Post' }));
    const both = await one.overviews.read('1h');
    expect(both).toMatchObject({ scope: 'replicas', complete: true, totals: { calls: 2 } });
    expect(both.classes).toEqual([{ name: 'Post', calls: 2, refused: 0 }]);
    expect(both.replicas.map(({ replica, answered }) => [replica, answered])).toEqual([
      ['a', true],
      ['b', true],
    ]);
    const silent = firstValueFrom(bus.messages('console.overview.left'));
    two.overviews.onModuleDestroy();
    await silent;
    expect(await one.overviews.read('1h')).toMatchObject({ complete: true, totals: { calls: 1 } });
    await bus.publish('console.overview.answered', { replica: 'c', name: 'host-c', since: '2026' });
    expect(await one.overviews.read('1h')).toMatchObject({
      complete: false,
      replicas: [{ replica: 'a' }, { replica: 'c', answered: false }],
    });
  });

  it('is given whatever another replica answers, with its own figures unchanged', async () => {
    const bus = new ProcessMessageBus();
    const clock = { now: START };
    const { statistics, overviews } = replicaOn(bus, 'a', clock);
    statistics.record(call());
    let forged: object = {};
    bus.messages('console.overview.asked').subscribe(({ id }) => {
      const named = { id, replica: 'b', name: 'b', since: '2026' };
      void bus.publish('console.overview.answered', { ...named, ...forged } as never);
    });
    const bucketNumber = String(Math.floor(START / 60_000));
    const wrong = fc.jsonValue({ maxDepth: 2 });
    const counts = fc.dictionary(fc.constantFrom('x', '__proto__', 'calls'), wrong);
    const bucket = fc.oneof(
      wrong,
      fc.record({
        calls: wrong,
        durations: wrong,
        gates: fc.oneof(wrong, counts),
        agents: counts,
        tools: counts,
      }),
    );
    await fc.assert(
      fc.asyncProperty(bucket, bucket, wrong, async (total, one, other) => {
        forged = { total, buckets: { [bucketNumber]: one, other } };
        const overview = await overviews.read('1h');
        const { calls } = overview.totals as { calls: number };
        expect(calls).toBeGreaterThanOrEqual(1);
      }),
      { numRuns: 60, examples: [[{ gates: { x: null } }, {}, {}] as never, [{}, [null], {}] as never] },
    );
    forged = {
      total: { calls: 2, tools: { x: null } },
      buckets: { [bucketNumber]: { agents: { x: null } } },
    };
    expect((await overviews.read('1h')).totals).toMatchObject({ calls: 3 });
  });

  it('gives percentiles that are exact to a tenth', () => {
    const times = fc.array(fc.double({ min: 0.05, max: 500_000, noNaN: true }), {
      minLength: 1,
      maxLength: 50,
    });
    fc.assert(
      fc.property(times, fc.constantFrom(0.5, 0.95), (durations, share) => {
        const bucket = new Bucket();
        for (const duration_ms of durations) bucket.add(call({ duration_ms }));
        const exact = durations.sort((a, b) => a - b)[
          Math.ceil(durations.length * share - 1e-9) - 1
        ] as number;
        expect(Math.abs((bucket.percentile(share) as number) - exact)).toBeLessThanOrEqual(
          exact * 0.1 + 0.01,
        );
      }),
    );
  });

  it('keeps a bounded number of names, and those of calls that ran, whatever names are made up', () => {
    const bucket = new Bucket();
    for (let one = 0; one < 500; one += 1)
      bucket.add(call({ tool: `made_up_${one}`, class_name: `C${one}`, success: false, gate: 'tool' }));
    bucket.add(call({ class_name: 'Post' }));
    const counted = bucket.countNames();
    expect(Object.keys(counted.tools).length).toBeLessThanOrEqual(33);
    expect(counted.tools['query_class']).toMatchObject({ calls: 1, refused: 0 });
    expect(counted.classes['Post']).toMatchObject({ calls: 1 });
    expect(counted.classes['(other)']?.refused).toBeGreaterThan(400);
    expect(Object.values(counted.tools).reduce((sum, { calls }) => sum + calls, 0)).toBe(501);
  });

  it('loses no call when buckets are merged in another order', () => {
    const record = fc.record({
      tool: fc.string({ maxLength: 3 }),
      class_name: fc.constantFrom('__proto__', 'constructor', 'Post', 'A'),
      success: fc.boolean(),
      duration_ms: fc.double({ min: 0, max: 1e6, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(fc.array(record, { maxLength: 20 }), { maxLength: 4 }), (parts) => {
        const merged = new Bucket();
        for (const part of parts) {
          const bucket = new Bucket();
          for (const one of part) bucket.add(call(one));
          merged.merge(JSON.parse(JSON.stringify(bucket.countNames())));
        }
        const all = parts.flat();
        const sum = (names: object) =>
          Object.values(names).reduce((total: number, count: { calls: number }) => total + count.calls, 0);
        expect(merged.countNames().calls).toBe(all.length);
        expect(sum(merged.countNames().classes)).toBe(all.length);
        expect(sum(merged.countNames().tools)).toBe(all.length);
      }),
    );
  });
});
