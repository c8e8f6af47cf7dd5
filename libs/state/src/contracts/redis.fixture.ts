import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { BUDGET_STEPS } from '#core';
import type { SharedState } from '../ports/shared-state.js';
import { openRedisState } from '../redis/open-redis-state.js';
import { BUDGET_WINDOW_UNDER_TEST } from './budget-store.contract.js';
import { type RedisServer, startRedis } from './redis-server.js';

/** One Redis as replicas see it, with control over its time and its keys. */
export interface RedisFixture {
  readonly url: string;
  /** The state of one replica. Replicas with one prefix share everything. */
  enter(prefix?: string): Promise<SharedState>;
  /** A prefix that no other test uses. */
  freshPrefix(): string;
  /** Advances the time of all keys of a prefix: entries that would have expired by then are removed. */
  pass(prefix: string, milliseconds: number): Promise<void>;
  /** A plain client, to read and to corrupt keys. */
  readonly client: Redis;
  /** Null when `REDIS_URL` named a Redis that the tests must not stop. */
  readonly server: RedisServer | null;
  close(): Promise<void>;
}

const SILENT = { warn: () => undefined };

/** The window steps of a budget under test. */
async function ageSteps(client: Redis, key: string, milliseconds: number): Promise<void> {
  const steps = Math.floor((milliseconds * BUDGET_STEPS) / (BUDGET_WINDOW_UNDER_TEST * 1000));
  if (steps === 0) return;
  const aged = Object.entries(await client.hgetall(key)).map(([field, used]): [string, string] => {
    const [step = '0', quantity = ''] = field.split(':');
    return [`${Number(step) - steps}:${quantity}`, used];
  });
  const left = await client.pttl(key);
  await client
    .multi()
    .del(key)
    .hset(key, ...aged.flat())
    .pexpire(key, left)
    .exec();
}

/** Times of calls are stored as values, which do not expire with their key. */
async function ageStamps(client: Redis, key: string, milliseconds: number): Promise<void> {
  const stamps = await client.lrange(key, 0, -1);
  for (const [at, stamp] of stamps.entries()) await client.lset(key, at, Number(stamp) - milliseconds * 1000);
}

/** Expiry times of the members of a share are stored as values too. */
async function ageMembers(client: Redis, key: string, milliseconds: number): Promise<void> {
  if (key.endsWith(':weights')) return;
  for (const member of await client.zrange(key, '0', '-1'))
    await client.zincrby(key, -milliseconds, String(member));
}

async function elapse(client: Redis, prefix: string, milliseconds: number): Promise<void> {
  for (const key of await client.keys(`${prefix}:*`)) {
    if (key.includes('{rate:')) await ageStamps(client, key, milliseconds);
    if (key.includes('{budget:')) await ageSteps(client, key, milliseconds);
    if (key.includes('{share:')) await ageMembers(client, key, milliseconds);
    if (key.includes('{session:')) await client.hincrby(key, 'counted', -Math.floor(milliseconds / 1000));
    const left = await client.pttl(key);
    if (left >= 0) await client.pexpire(key, Math.max(left - milliseconds, 0));
  }
}

/** Uses the Redis of `REDIS_URL`, else starts one. */
export async function openRedisFixture(): Promise<RedisFixture> {
  const given = process.env['REDIS_URL'];
  const server = given === undefined ? await startRedis() : null;
  const url = given ?? (server as RedisServer).url;
  const client = new Redis(url);
  client.on('error', () => undefined);
  const states: SharedState[] = [];
  const freshPrefix = () => `parley-test-${randomUUID()}`;
  return {
    url,
    client,
    server,
    freshPrefix,
    enter: async (prefix = freshPrefix()) => {
      const state = await openRedisState({ url, prefix }, SILENT);
      states.push(state);
      return state;
    },
    pass: (prefix, milliseconds) => elapse(client, prefix, milliseconds),
    close: async () => {
      for (const state of states) await state.close();
      client.disconnect();
      await server?.stop();
    },
  };
}
