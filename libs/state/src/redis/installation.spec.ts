import { Redis } from 'ioredis';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { openSharedState } from '../open-shared-state.js';
import { type RedisServer, startRedis } from '../contracts/redis-server.js';
import { ForeignInstallation, type SharedState } from '../ports/shared-state.js';
import { SharedStateUnavailable } from '../ports/stores.js';

let redis: RedisServer;
const opened: SharedState[] = [];
const warnings: string[] = [];
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await Promise.all(opened.map((state) => state.close()));
  await redis.stop();
});

const ACME = ['mongodb a:27017 acme', 'mongodb b:27017 acme'];
const GLOBEX = ['mongodb a:27017 globex'];

async function open(
  prefix: string,
  installation?: readonly string[],
  settings: object = {},
): Promise<SharedState> {
  const state = await openSharedState({
    url: redis.url,
    prefix,
    ...settings,
    log: { warn: (line) => void warnings.push(line) },
    ...(installation && { installation }),
  });
  opened.push(state);
  return state;
}

const countConnections = async (client: Redis) =>
  Number(/total_connections_received:(\d+)/.exec(await client.info('stats'))?.[1]);

describe('the keys of a prefix', () => {
  it('belong to the first installation that opens them, and to its replicas', async () => {
    await open('one', ACME);
    await expect(open('one', ACME)).resolves.toBeDefined();
    await expect(open('one', [...ACME].reverse())).resolves.toBeDefined();
    await expect(open('one', ['mongodb b:27017 acme', 'mongodb c:27017 acme'])).resolves.toBeDefined();
  });

  it('refuse an installation of another database, and name the key that holds whose they are', async () => {
    await open('two', ACME);
    const refused = await open('two', GLOBEX).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ForeignInstallation);
    const { key } = refused as ForeignInstallation;
    expect(key).toMatch(/^two:\{installation:/);
    await expect(open('three', GLOBEX)).resolves.toBeDefined();
    // What an operator does whose database was moved.
    const client = new Redis(redis.url);
    await client.del(key);
    await expect(open('two', GLOBEX)).resolves.toBeDefined();
    await expect(open('two', ACME)).rejects.toThrow(ForeignInstallation);
    client.disconnect();
  });

  it('belong to one of several that open them at once', async () => {
    const found = await Promise.allSettled(
      Array.from({ length: 6 }, (_, at) => open('race', at % 2 === 0 ? ACME : GLOBEX)),
    );
    expect(found.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
  });

  it('hold no name of a database and nothing that another Redis has as well', async () => {
    const client = new Redis(redis.url);
    await open('four', ACME);
    await open('five', ACME);
    const held = await Promise.all(
      ['four', 'five'].map(async (prefix) => {
        const [key = ''] = await client.keys(`${prefix}:{installation:*`);
        return String(await client.get(key));
      }),
    );
    for (const text of held) expect(text).not.toMatch(/acme|27017/);
    expect(held[0]).not.toBe(held[1]);
    client.disconnect();
  });

  it('refuse everybody where what they hold is damaged', async () => {
    const client = new Redis(redis.url);
    await open('six', ACME);
    const [key = ''] = await client.keys('six:{installation:*');
    for (const damaged of ['', 'null', '{}', '{"places":"x"}', '{"places":[null]}']) {
      await client.set(key, damaged);
      await expect(open('six', ACME)).rejects.toThrow(ForeignInstallation);
    }
    client.disconnect();
  });

  it('are asked for again after an outage, and a stranger is shut out then', async () => {
    const state = await open('seven', ACME);
    const client = new Redis(redis.url);
    const [key = ''] = await client.keys('seven:{installation:*');
    await client.del(key);
    await open('seven', GLOBEX);
    expect(await state.isUp()).toBe(true);
    await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await expect.poll(() => state.isUp(), { timeout: 10_000 }).toBe(false);
    await expect
      .poll(() => warnings.some((line) => line.includes('another database') && line.includes(key)), {
        timeout: 10_000,
      })
      .toBe(true);
    await expect(state.sessions.find('x')).rejects.toThrow(SharedStateUnavailable);
    client.disconnect();
  });

  it.each([
    ['one connection', {}],
    ['a connection of its own for what replicas must have', { waitForReplicas: 1 }],
  ])('serve nothing of a stranger before they were asked for again, over %s', async (_, settings) => {
    const prefix = `eight-${Object.keys(settings).length}`;
    const state = await open(prefix, ACME, settings);
    const heard: unknown[] = [];
    state.bus.messages('topic').subscribe((message) => heard.push(message));
    const client = new Redis(redis.url);
    const [key = ''] = await client.keys(`${prefix}:{installation:*`);
    await client.del(key);
    const stranger = await open(prefix, GLOBEX);
    await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub', 'SKIPME', 'yes');
    const served: unknown[] = [];
    const until = Date.now() + 3_000;
    const asked: Promise<unknown>[] = [];
    while (Date.now() < until && !warnings.some((line) => line.includes(key))) {
      for (const ask of [
        () => state.sessions.find('theirs'),
        () => state.oneTime.claim('once', 60_000),
        () => state.secrets.secret('new'),
        () => state.bus.publish('topic', { from: 'us' }),
      ])
        asked.push(
          ask().then(
            (answer) => served.push(answer),
            () => undefined,
          ),
        );
      await stranger.bus.publish('topic', { from: 'them' }).catch(() => undefined);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(asked);
    expect(asked.length).toBeGreaterThan(20);
    expect(warnings.some((line) => line.includes(key))).toBe(true);
    expect([served, heard]).toEqual([[], []]);
    await expect.poll(() => stranger.isUp(), { timeout: 10_000 }).toBe(true);
    expect(await stranger.oneTime.claim('once', 60_000)).toBe(true);
    client.disconnect();
  });

  it('are not served while it cannot be said whose they are, and from then on that it can', async () => {
    const client = new Redis(redis.url);
    await client.config('SET', 'maxmemory', '1');
    const state = await open('full', ACME);
    expect(await state.isUp()).toBe(false);
    await expect(state.sessions.find('x')).rejects.toThrow(SharedStateUnavailable);
    const [before, { length }] = [await countConnections(client), warnings];
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect((await countConnections(client)) - before).toBeLessThan(10);
    expect(warnings.length - length).toBeLessThan(10);
    await client.config('SET', 'maxmemory', '0');
    await expect.poll(() => state.isUp(), { timeout: 10_000 }).toBe(true);
    client.disconnect();
  });

  it('are read in a Redis that is full, where they say whose they are', async () => {
    const client = new Redis(redis.url);
    await open('read', ACME);
    await client.config('SET', 'maxmemory', '1');
    const state = await open('read', ACME);
    expect(await state.isUp()).toBe(true);
    expect(await state.sessions.find('x')).toBeUndefined();
    await client.config('SET', 'maxmemory', '0');
    client.disconnect();
  });

  it('that were lost are reported once by each replica that had them, and not after an outage without a loss', async () => {
    const own = await startRedis([
      '--appendonly',
      'yes',
      '--dir',
      mkdtempSync(join(tmpdir(), 'parley-redis-')),
    ]);
    const lines: string[] = [];
    const log = { warn: (line: string) => void lines.push(line) };
    const open = () => openSharedState({ url: own.url, log, installation: ACME });
    const replicas = await Promise.all([open(), open()]);
    const back = async () => {
      await own.stop();
      await own.start();
      for (const state of replicas)
        await vi.waitFor(async () => expect(await state.isUp()).toBe(true), {
          timeout: 20_000,
          interval: 50,
        });
    };
    const losses = () => lines.filter((line) => line.includes('it lost what it held')).length;
    await back();
    expect(losses()).toBe(0);
    const client = new Redis(own.url);
    await client.flushall();
    client.disconnect();
    await back();
    expect(losses()).toBe(2);
    await Promise.all(replicas.map((state) => state.close()));
    await own.stop();
  }, 60_000);

  it('serve their own installation again once they were asked for', async () => {
    const state = await open('nine', ACME);
    const client = new Redis(redis.url);
    await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await expect.poll(() => state.isUp(), { timeout: 10_000 }).toBe(true);
    expect(await state.oneTime.claim('once', 60_000)).toBe(true);
    client.disconnect();
  });
});
