import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type BusMessage, openSharedState, type SharedState, SharedStateUnavailable } from '#state';
import { createDraft, type RedisTopology, startRedisCluster, startSentinels } from '#state/contracts';

import { type Database, rpc, type Service, startDatabase, startService } from '../../support/service.js';
import { askModern, callModern, FOLLOWS_TASKS } from '../../support/modern-call.js';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { makeFolder } from '../../support/started.js';

const WAIT = { timeout: 20_000, interval: 50 };
const SESSION = { owner: 'ada', version: '2025-11-25', capabilities: {} };

/** Claims names one after the other as a caller would that tries again after every failure. */
async function claimThroughout(states: readonly SharedState[], ended: () => boolean) {
  const granted = new Map<string, number>();
  let refusedForNow = 0;
  for (let at = 0; !ended(); at++) {
    const name = `write-${at}`;
    for (;;) {
      // Every attempt asks all replicas at once: one of them may have the claim, never two.
      const answers = await Promise.allSettled(states.map(({ oneTime }) => oneTime.claim(name, 600_000)));
      const won = answers.filter((one) => one.status === 'fulfilled' && one.value).length;
      granted.set(name, (granted.get(name) ?? 0) + won);
      const failed = answers.filter((one) => one.status === 'rejected');
      for (const { reason } of failed as PromiseRejectedResult[])
        expect(reason).toBeInstanceOf(SharedStateUnavailable);
      if (failed.length === 0) break;
      refusedForNow++;
      await pause(20);
    }
    await pause(5);
  }
  return { granted, refusedForNow };
}

describe.each([
  ['Sentinels', startSentinels],
  ['a cluster with replicas', () => startRedisCluster({ replicas: true })],
])('a primary of %s that is killed', (_, start) => {
  let topology: RedisTopology;
  let states: SharedState[];
  const lines: string[] = [];
  beforeAll(async () => {
    topology = await start();
    const log = { warn: (line: string) => lines.push(line) };
    const settings = { ...topology.settings, waitForReplicas: 1, log };
    states = await Promise.all([openSharedState(settings), openSharedState(settings)]);
  }, 60_000);
  afterAll(async () => {
    for (const state of states) await state.close();
    await topology.stop();
  });

  it('loses no session and no approval, grants nothing twice, and its replica serves on', async () => {
    const [one, two] = states as [SharedState, SharedState];
    const heard: BusMessage[] = [];
    two.bus.messages('t').subscribe((message) => heard.push(message));
    await vi.waitFor(async () => {
      expect(await one.isUp()).toBe(true);
      expect(await two.isUp()).toBe(true);
    }, WAIT);
    const sessions = await Promise.all(Array.from({ length: 30 }, () => one.sessions.create(SESSION)));
    const { opened } = await one.approvals.open(createDraft(), 600_000);
    expect(await two.approvals.decide(opened.id, { approved: true, by: 'eve', at: 1 })).toBe('decided');
    const used = await one.approvals.open(createDraft({ subject: 'used' }), 600_000);
    await one.approvals.decide(used.opened.id, { approved: true, by: 'eve', at: 1 });
    expect(await one.approvals.use(used.opened.id)).toBe(true);
    const secret = await one.secrets.secret('state');

    let over = false;
    const claiming = claimThroughout(states, () => over);
    await pause(300);
    for (let primary = 0; primary < topology.primaries.length; primary += 2) {
      await topology.kill(primary);
      await vi.waitFor(async () => expect(await topology.isReplaced(primary)).toBe(true), WAIT);
      await topology.revive(primary);
      // The server that was killed is a replica now, for which claims wait.
      await vi.waitFor(() => states[0]?.oneTime.claim(`after-${primary}`, 60_000), WAIT);
      await vi.waitFor(async () => {
        for (const state of states) {
          expect(await state.isUp()).toBe(true);
          for (const id of sessions) expect(await state.sessions.find(id)).toBeDefined();
        }
      }, WAIT);
    }
    await pause(300);
    over = true;
    const { granted, refusedForNow } = await claiming;

    expect(refusedForNow).toBeGreaterThan(0);
    expect(granted.size).toBeGreaterThan(20);
    expect([...granted.values()].filter((times) => times > 1)).toEqual([]);
    expect(await two.approvals.find(opened.id)).toMatchObject({ status: 'approved' });
    expect(await two.approvals.use(used.opened.id)).toBe(false);
    expect(await two.secrets.secret('state')).toEqual(secret);
    await vi.waitFor(async () => {
      await one.bus.publish('t', { n: 1 });
      expect(heard.length).toBeGreaterThan(0);
    }, WAIT);
    expect(lines.join('\n')).toContain('unavailable');
  }, 60_000);
});

describe('two services over a cluster', () => {
  let topology: RedisTopology;
  let database: Database;
  let services: [Service, Service];
  const folder = makeFolder('cluster');
  const key = { 'X-MCP-API-Key': 'key-of-ada' };
  beforeAll(async () => {
    [topology, database] = await Promise.all([startRedisCluster(), startDatabase(POSTS_SEED)]);
    const config = {
      redis: topology.settings,
      agents: { ada: { permissions: 'readonly', tenantId: 'acme' } },
      auth: [{ apiKey: 'key-of-ada', agent: 'ada' }],
      policy: POSTS_POLICY,
      plugins: [fileURLToPath(new URL('../../fixtures/plugins/slow.mjs', import.meta.url))],
    };
    const start = () => startService({ config, env: { MONGODB_URI: database.uri } });
    services = await Promise.all([start(), start()]);
  }, 60_000);
  afterAll(async () => {
    await Promise.all(services.map((service) => service.stop()));
    await Promise.all([database.stop(), topology.stop()]);
  });

  const taskAt = async (service: Service, taskId: string) =>
    (await askModern(service, 'tasks/get', { taskId }, key)).body['result'];

  it('know the sessions and run the tasks of each other', async () => {
    const [one, two] = services;
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'x', version: '1' },
    };
    const session = (await rpc(one, 'initialize', params, key)).headers.get('mcp-session-id') ?? '';
    expect((await rpc(two, 'ping', {}, { ...key, 'Mcp-Session-Id': session })).status).toBe(200);
    const until = join(folder, 'go-on');
    const { result } = await callModern(
      one,
      'slow_read',
      { until },
      { headers: key, capabilities: FOLLOWS_TASKS },
    );
    expect(result).toMatchObject({ resultType: 'task', status: 'working' });
    writeFileSync(until, '');
    await vi.waitFor(async () => {
      expect(await taskAt(two, String(result?.['taskId']))).toMatchObject({ status: 'completed' });
    }, WAIT);
    const ready = await fetch(new URL('/ready', two.url));
    expect(ready.status).toBe(200);
  });
});

describe('a cluster', () => {
  let topology: RedisTopology;
  let state: SharedState;
  beforeAll(async () => {
    topology = await startRedisCluster();
    state = await openSharedState({ ...topology.settings, log: { warn: () => undefined } });
  }, 60_000);
  afterAll(async () => {
    await state.close();
    await topology.stop();
  });
  afterEach(() => [0, 1, 2].forEach((at) => topology.resume(at)));

  it('moves slots to another node amid calls, and every call is answered once', async () => {
    const [from, to] = topology.primaries;
    if (!from || !to) throw new Error('two primaries are expected');
    const ids = await Promise.all(Array.from({ length: 60 }, () => state.sessions.create(SESSION)));
    const [source, target] = await Promise.all([from.cluster('MYID'), to.cluster('MYID')]);
    const { port } = to.options;
    let over = false;
    let failed = 0;
    const asking = (async () => {
      const taken: number[] = [];
      for (let at = 0; !over; at++) {
        const key = `moving-${at}`;
        const answers = await Promise.allSettled([
          state.oneTime.claim(key, 60_000, 'ada'),
          state.oneTime.claim(key, 60_000, 'ada'),
        ]);
        failed += answers.filter(({ status }) => status === 'rejected').length;
        taken.push(answers.filter((one) => one.status === 'fulfilled' && one.value).length);
      }
      return taken;
    })();
    let moved = 0;
    for (let slot = 0; slot < 5_000; slot += 1) {
      const keys = await from.cluster('GETKEYSINSLOT', slot, 100);
      if (keys.length === 0) continue;
      await to.cluster('SETSLOT', slot, 'IMPORTING', source);
      await from.cluster('SETSLOT', slot, 'MIGRATING', target);
      await from.call('migrate', '127.0.0.1', String(port), '', '0', '5000', 'KEYS', ...keys);
      await to.cluster('SETSLOT', slot, 'NODE', target);
      await from.cluster('SETSLOT', slot, 'NODE', target);
      moved += keys.length;
    }
    over = true;
    const taken = await asking;
    expect(moved).toBeGreaterThan(10);
    expect(failed).toBe(0);
    expect(new Set(taken)).toEqual(new Set([1]));
    for (const id of ids) expect(await state.sessions.find(id)).toBeDefined();
  }, 60_000);

  it('of which a node hangs refuses calls in time, and serves again by itself', async () => {
    topology.pause(0);
    const claims = async (name: string) => {
      const began = Date.now();
      const attempts = await Promise.allSettled(
        Array.from({ length: 30 }, (_, at) => state.oneTime.claim(`${name}-${at}`, 60_000)),
      );
      expect(Date.now() - began).toBeLessThan(3_000);
      const refused = attempts.flatMap((attempt, at) => {
        if (attempt.status !== 'rejected') return [];
        expect(attempt.reason).toBeInstanceOf(SharedStateUnavailable);
        return [`${name}-${at}`];
      });
      expect(refused).not.toEqual([]);
      return refused;
    };
    await claims('first');
    const refused = await claims('then');
    topology.resume(0);
    await vi.waitFor(async () => expect(await state.isUp()).toBe(true), WAIT);
    // The node was known to hang: nothing was kept for it, to be sent after the caller was refused.
    for (const name of refused) expect(await state.oneTime.claim(name, 60_000)).toBe(true);
  }, 60_000);

  it('of which a node is restarted alone serves again by itself, and has lost what that node held alone', async () => {
    const ids = await Promise.all(Array.from({ length: 60 }, () => state.sessions.create(SESSION)));
    await topology.kill(1);
    const attempts = await Promise.allSettled(
      Array.from({ length: 30 }, (_, at) => state.oneTime.claim(`away-${at}`, 60_000)),
    );
    const refused = attempts.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
    expect(refused.length).toBeGreaterThan(0);
    for (const reason of refused) expect(reason).toBeInstanceOf(SharedStateUnavailable);
    await topology.revive(1);
    let attempt = 0;
    await vi.waitFor(async () => {
      attempt += 1;
      const claimed = await Promise.all(ids.map((id) => state.oneTime.claim(`${id} ${attempt}`, 60_000)));
      expect(claimed.every(Boolean)).toBe(true);
    }, WAIT);
    const found = await Promise.all(ids.map((id) => state.sessions.find(id)));
    const lost = found.filter((one) => one === undefined).length;
    expect(lost).toBeGreaterThan(0);
    expect(lost).toBeLessThan(40);
    expect(await state.isUp()).toBe(true);
  }, 60_000);

  it('asks a node that returns whose keys it holds, and uses none of another installation', async () => {
    const lines: string[] = [];
    const log = { warn: (line: string) => void lines.push(line) };
    const prefix = 'returning';
    const own = await openSharedState({
      ...topology.settings,
      prefix,
      log,
      installation: ['mongodb://own/'],
    });
    try {
      const claimAll = () =>
        Promise.allSettled(Array.from({ length: 30 }, (_, at) => own.oneTime.claim(`${at}`, 60_000)));
      expect((await claimAll()).every(({ status }) => status === 'fulfilled')).toBe(true);
      const held = await Promise.all(topology.primaries.map((node) => node.keys(`${prefix}:*installation*`)));
      const at = held.findIndex((keys) => keys.length > 0);
      for (const key of held[at] ?? []) {
        const kept = await topology.primaries[at]?.get(key);
        if (kept?.includes('places') === true)
          await topology.primaries[at]?.set(key, JSON.stringify({ places: ['of another'] }));
      }
      topology.pause(at);
      await vi.waitFor(async () => {
        await claimAll();
        expect(lines.join('\n')).toMatch(/the node .* is unavailable/);
      }, WAIT);
      topology.resume(at);
      await vi.waitFor(async () => {
        expect((await claimAll()).every(({ status }) => status === 'rejected')).toBe(true);
        expect(lines.join('\n')).toContain('an installation with another database has these keys');
      }, WAIT);
    } finally {
      await own.close();
    }
  }, 60_000);
});
