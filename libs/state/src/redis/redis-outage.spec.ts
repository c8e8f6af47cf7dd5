import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createDraft } from '../contracts/approval-store.contract.js';
import { type RedisServer, startRedis } from '../contracts/redis-server.js';
import { openSharedState } from '../open-shared-state.js';
import { type BusMessage, SharedStateUnavailable } from '../ports/stores.js';
import type { SharedState } from '../ports/shared-state.js';

const WAIT = { timeout: 20_000, interval: 50 };

function logLines() {
  const lines: string[] = [];
  return { lines, warn: (line: string) => lines.push(line) };
}

describe('a Redis that goes away and comes back', () => {
  let server: RedisServer;
  let state: SharedState;
  const log = logLines();
  beforeAll(async () => {
    server = await startRedis();
    state = await openSharedState({ url: server.url, log });
  }, 60_000);
  afterAll(async () => {
    await state.close();
    await server.stop();
  });

  const everyPort = (): Promise<unknown>[] => [
    state.sessions.create({ owner: 'ada', version: '1', capabilities: {} }),
    state.sessions.find('x'),
    state.sessions.terminate('x'),
    state.oneTime.keep('k', {}, 1000),
    state.oneTime.take('k'),
    state.oneTime.claim('k', 1000),
    state.streams.append('s', 'frame'),
    state.streams.after('s', '1-1'),
    state.streams.forget('s'),
    state.bus.publish('t', {}),
    state.subscriptions.of('s'),
    state.subscriptions.forget('s'),
    state.approvals.open(createDraft(), 1000),
    state.approvals.find('x'),
    state.approvals.listPending('x'),
    state.approvals.decide('x', { approved: true, by: 'eve', at: 1 }),
    state.approvals.use('x'),
    state.secrets.secret('s'),
  ];

  it('makes every port unavailable in a typed way and is used again by itself', async () => {
    const heard: BusMessage[] = [];
    const subscription = state.bus.messages('t').subscribe((message) => heard.push(message));
    await vi.waitFor(async () => expect(await state.isUp()).toBe(true), WAIT);

    await server.stop();
    for (const attempt of everyPort()) await expect(attempt).rejects.toBeInstanceOf(SharedStateUnavailable);
    expect(await state.isUp()).toBe(false);

    await server.start();
    await vi.waitFor(async () => expect(await state.isUp()).toBe(true), WAIT);
    await Promise.all(everyPort());
    await vi.waitFor(() => expect(heard).toEqual([{}]), WAIT);
    subscription.unsubscribe();
  });

  it('is taken for gone when it hangs: what follows fails without waiting for it', async () => {
    await vi.waitFor(async () => expect(await state.isUp()).toBe(true), WAIT);
    server.pause();
    try {
      await expect(state.oneTime.take('k')).rejects.toBeInstanceOf(SharedStateUnavailable);
      // The driver refuses at once: nothing more is sent on a closed connection.
      await expect(state.oneTime.take('k')).rejects.toMatchObject({
        cause: { message: expect.not.stringContaining('no answer') as string },
      });
    } finally {
      server.resume();
    }
    await vi.waitFor(async () => expect(await state.isUp()).toBe(true), WAIT);
    expect(await state.oneTime.take('k')).toBeUndefined();
  });

  it('is logged once each way, without its address or what was sent', async () => {
    await server.stop();
    await vi.waitFor(async () => expect(await state.isUp()).toBe(false), WAIT);
    await server.start();
    await vi.waitFor(async () => expect(await state.isUp()).toBe(true), WAIT);
    const text = log.lines.join('\n');
    expect(text).toContain('commands: unavailable');
    expect(text).toContain('commands: available again');
    expect(text).not.toContain('redis://');
    expect(text).not.toContain('ada');
    const losses = log.lines.filter((line) => line.includes('commands: unavailable'));
    const returns = log.lines.filter((line) => line.includes('commands: available again'));
    expect(losses).toHaveLength(returns.length);
  });
});

describe('a Redis that lost everything', () => {
  it('leaves all replicas with one new secret, so that nothing sealed before is honoured again', async () => {
    const server = await startRedis();
    const replicas = [
      await openSharedState({ url: server.url, log: logLines() }),
      await openSharedState({ url: server.url, log: logLines() }),
    ];
    const secrets = () => Promise.all(replicas.map(({ secrets: kept }) => kept.secret('state')));
    const [before] = await secrets();
    await server.stop();
    await server.start();
    for (const replica of replicas)
      await vi.waitFor(async () => expect(await replica.isUp()).toBe(true), WAIT);
    const [here, there] = await secrets();
    expect(here).toEqual(there);
    expect(here).not.toEqual(before);
    await Promise.all(replicas.map((replica) => replica.close()));
    await server.stop();
  });
});

describe('a Redis that asks for a password', () => {
  it('is not used with a wrong one, which is never logged', async () => {
    const server = await startRedis(['--requirepass', 'correct']);
    const log = logLines();
    const wrong = await openSharedState({ url: server.url.replace('//', '//:hunter2@'), log });
    const right = await openSharedState({ url: server.url.replace('//', '//:correct@'), log });
    expect([await wrong.isUp(), await right.isUp()]).toEqual([false, true]);
    const failure = await wrong.oneTime.take('k').catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(SharedStateUnavailable);
    expect(inspect(failure, { depth: 9, showHidden: true })).not.toContain('hunter2');
    expect(log.lines.join('\n')).not.toContain('hunter2');
    await Promise.all([wrong.close(), right.close(), server.stop()]);
  });
});

describe('a Redis without the replicas that must have a claim', () => {
  it('makes no claim count, and serves everything else as before', async () => {
    const server = await startRedis();
    const log = logLines();
    const state = await openSharedState({ url: server.url, waitForReplicas: 1, log });
    expect(await state.isUp()).toBe(true);
    const limiter = state.limiters.limiter('calls', { limit: 1_000, window: 60 });
    const claims = Promise.allSettled(
      Array.from({ length: 20 }, (_, at) => state.oneTime.claim(`k-${at}`, 60_000)),
    );
    const checks = await Promise.all(Array.from({ length: 50 }, () => limiter.check('ada')));
    expect(checks).toEqual(checks.map(() => null));
    for (const claim of await claims)
      expect(claim).toMatchObject({
        status: 'rejected',
        reason: expect.any(SharedStateUnavailable) as unknown,
      });
    expect(await limiter.usage('ada')).toMatchObject({ used: 50 });
    expect(
      log.lines.filter((line) => line.includes(' commands: unavailable') && !line.includes('replicated')),
    ).toEqual([]);
    await state.close();
    await server.stop();
  });
});

describe('opening the shared state', () => {
  it('does not wait for ever for a Redis that is away, and uses it once it is there', async () => {
    const server = await startRedis();
    await server.stop();
    const state = await openSharedState({ url: server.url, log: logLines() });
    expect(await state.isUp()).toBe(false);
    await expect(state.oneTime.take('k')).rejects.toBeInstanceOf(SharedStateUnavailable);
    await server.start();
    await vi.waitFor(async () => expect(await state.isUp()).toBe(true), WAIT);
    await state.close();
    await server.stop();
  });

  it.each(['', 'localhost:6379', 'http://x:hunter2@y', 'redis://user:hunter2@[bad'])(
    'refuses the URL %j without repeating it',
    async (url) => {
      const opening = openSharedState({ url, log: logLines() });
      await expect(opening).rejects.toThrow(TypeError);
      await expect(opening).rejects.not.toThrow(/hunter2/);
    },
  );

  it('needs no Redis without a URL, and says that it reaches one process only', async () => {
    const state = await openSharedState({ url: null, log: logLines() });
    expect(state.reach).toBe('process');
    expect(await state.isUp()).toBe(true);
    await state.oneTime.keep('k', { n: 1 }, 1000);
    expect(await state.oneTime.take('k')).toEqual({ n: 1 });
    await state.close();
  });
});
