import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { AuditRecord } from '#audit';
import { ProcessVersionedStore, SharedStateUnavailable } from '#state';
import { CallHistory } from './call-history.js';
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

const opened: CallHistory[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.onModuleDestroy();
});

function replicaOn(
  history: ProcessVersionedStore,
  replica: string,
  clock: { now: number },
  reach: 'process' | 'replicas' = 'replicas',
) {
  const now = () => clock.now;
  const statistics = new CallStatistics(now);
  const counted = new CallHistory(statistics, { history, reach }, now);
  opened.push(counted);
  const overviews = new Overviews(counted, { replica, reach, now, kept: 0 });
  return { statistics, overviews, counted };
}

describe('the overview of calls', () => {
  it('has every bucket of its window, oldest first, and zeros where nothing was', async () => {
    const clock = { now: START };
    const { statistics, overviews } = replicaOn(new ProcessVersionedStore(), 'a', clock);
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

  it('counts apart which of the refused calls a person denied', async () => {
    const { statistics, overviews } = replicaOn(new ProcessVersionedStore(), 'a', { now: START });
    const refused = { success: false, gate: 'approval' as const, approver: 'key:chief' };
    const denied = { ...refused, denial_kind: 'denied_by_person' as const };
    for (const one of [denied, refused, { approver: 'key:chief' }]) statistics.record(call(one));
    const { agents, buckets } = await overviews.read('1h');
    expect(agents).toMatchObject([{ name: 'analyst', calls: 3, refused: 2, denied: 1 }]);
    expect(buckets.at(-1)).toMatchObject({ refused_agents: { analyst: 2 }, denied_agents: { analyst: 1 } });
  });

  it('forgets what is older than its window', async () => {
    const clock = { now: START };
    const { statistics, overviews } = replicaOn(new ProcessVersionedStore(), 'a', clock);
    statistics.record(call());
    clock.now += 3_600_000;
    expect((await overviews.read('1h')).totals).toMatchObject({ calls: 0, p50_ms: null });
    expect((await overviews.read('24h')).totals).toMatchObject({ calls: 1 });
  });

  it('is of all replicas, and outlives each of them', async () => {
    const history = new ProcessVersionedStore();
    const clock = { now: START };
    const [one, two] = [replicaOn(history, 'a', clock), replicaOn(history, 'b', clock)];
    one.statistics.record(call({ class_name: 'Post' }));
    two.statistics.record(call({ agent_name: 'writer', class_name: 'Post' }));
    await Promise.all([one.counted.onModuleDestroy(), two.counted.onModuleDestroy()]);
    clock.now += 60_000;
    const again = await replicaOn(history, 'c', clock).overviews.read('1h');
    expect(again).toMatchObject({ scope: 'replicas', degraded: false, totals: { calls: 2 } });
    expect(again.classes).toEqual([{ name: 'Post', calls: 2, refused: 0 }]);
    expect(again.counted_since).toBe(new Date(START).toISOString());
  });

  it('of one process says since when it is counted, and has nothing of the shared state', async () => {
    const history = new ProcessVersionedStore();
    const { overviews, statistics } = replicaOn(history, 'a', { now: START }, 'process');
    statistics.record(call());
    expect(await overviews.read('7d')).toMatchObject({
      scope: 'replica',
      totals: { calls: 1 },
      counted_since: new Date(START).toISOString(),
    });
    expect(await history.latest(10)).toEqual([]);
  });

  it('is of this process alone while the shared state is silent, and nothing of it is lost', async () => {
    const history = new ProcessVersionedStore();
    const clock = { now: START };
    const { overviews, statistics } = replicaOn(history, 'a', clock);
    const { find } = history;
    history.find = () => Promise.reject(new SharedStateUnavailable());
    statistics.record(call());
    expect(await overviews.read('1h')).toMatchObject({
      degraded: true,
      scope: 'replica',
      totals: { calls: 1 },
    });
    clock.now += 120_000;
    statistics.record(call());
    history.find = find;
    const found = await overviews.read('1h');
    expect(found).toMatchObject({ degraded: false, totals: { calls: 2 } });
    expect(found.buckets.slice(-3).map(({ calls }) => calls)).toEqual([1, 0, 1]);
  });

  it('says that it is counted since the shared state was lost, and begins with what was not stored yet', async () => {
    const history = new ProcessVersionedStore();
    const clock = { now: START };
    const { overviews, statistics } = replicaOn(history, 'a', clock);
    statistics.record(call());
    await overviews.read('1h');
    clock.now += 60_000;
    statistics.record(call());
    for (const { id } of await history.latest(100)) await history.remove(id);
    clock.now += 60_000;
    expect(await overviews.read('1h')).toMatchObject({
      totals: { calls: 1 },
      counted_since: new Date(START).toISOString(),
    });
    clock.now += 60_000;
    for (const { id } of await history.latest(100)) await history.remove(id);
    expect(await overviews.read('1h')).toMatchObject({
      totals: { calls: 0 },
      counted_since: new Date(START + 120_000).toISOString(),
    });
  });

  it('is given whatever the shared state has in its place, with the figures of this replica unchanged', async () => {
    const bucketNumber = Math.floor(START / 60_000);
    const wrong = fc.jsonValue({ maxDepth: 2 });
    const counts = fc.dictionary(fc.constantFrom('x', '__proto__', 'calls'), wrong);
    const stored = fc.record({
      calls: wrong,
      durations: wrong,
      gates: fc.oneof(wrong, counts),
      agents: counts,
      tools: counts,
    });
    await fc.assert(
      fc.asyncProperty(stored, wrong, async (bucket, since) => {
        const history = new ProcessVersionedStore();
        await history.create(`1h ${bucketNumber}`, bucket, 60_000);
        await history.create('since', { at: since }, 60_000);
        const { overviews, statistics } = replicaOn(history, 'a', { now: START });
        statistics.record(call());
        expect((await overviews.read('1h')).totals.calls).toBeGreaterThanOrEqual(1);
      }),
      { numRuns: 60 },
    );
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
