import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '../contracts/redis-server.js';
import { inspectRedis, openSharedState } from '../open-shared-state.js';
import { MissingDatabase, type SharedState } from '../ports/shared-state.js';
import { SharedStateUnavailable } from '../ports/stores.js';

const WAIT = { timeout: 20_000, interval: 50 };

const databases = ['--databases', '2'];
let redis: RedisServer;
const opened: SharedState[] = [];
const warnings: string[] = [];
beforeAll(async () => {
  redis = await startRedis(databases);
});
afterAll(async () => {
  await Promise.all(opened.map((state) => state.close()));
  await redis.stop();
});

async function open(database: number, settings: object = {}): Promise<SharedState> {
  const log = { warn: (line: string) => void warnings.push(line) };
  const state = await openSharedState({ url: `${redis.url}/${database}`, log, ...settings });
  opened.push(state);
  return state;
}

async function readKeys(database: number): Promise<string[]> {
  const client = new Redis(`${redis.url}/${database}`);
  const keys = await client.keys('*');
  client.disconnect();
  return keys;
}

describe('a database that the server lacks', () => {
  it.each([
    ['with an installation', { installation: ['mongodb a:27017 acme'] }],
    ['without an installation', {}],
    ['with replicas to wait for', { waitForReplicas: 1 }],
  ])('is refused at the start, %s, and nothing is written to another one', async (_, settings) => {
    const refused = await open(2, settings).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(MissingDatabase);
    expect((refused as Error).message).toMatch(/^the server refuses database 2 .*write a number below/);
    expect(await readKeys(0)).toEqual([]);
  });

  it('is refused to whoever inspects the server', async () => {
    const refused = await inspectRedis({ url: `${redis.url}/2` }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(SharedStateUnavailable);
    expect(((refused as Error).cause as Error).message).toContain('refuses database 2');
    expect(await inspectRedis({ url: `${redis.url}/1` })).toHaveLength(1);
  });

  it('makes the state unavailable while a server that was started again lacks it', async () => {
    const state = await open(1);
    await state.oneTime.keep('kept', {}, 60_000);
    expect(await readKeys(1)).toHaveLength(1);
    databases[1] = '1';
    await redis.stop();
    await redis.start();
    const until = Date.now() + 2_000;
    while (Date.now() < until) {
      await expect(state.oneTime.keep('kept', {}, 60_000)).rejects.toThrow(SharedStateUnavailable);
      expect(await state.isUp()).toBe(false);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(await readKeys(0)).toEqual([]);
    expect(warnings.some((line) => line.includes('refuses database 1'))).toBe(true);
    databases[1] = '2';
    await redis.stop();
    await redis.start();
    await expect.poll(() => state.isUp(), WAIT).toBe(true);
    await state.oneTime.keep('kept', {}, 60_000);
    expect([await readKeys(0), (await readKeys(1)).length]).toEqual([[], 1]);
  });
});
