import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDraft } from '../contracts/approval-store.contract.js';
import { type RedisServer, startRedis } from '../contracts/redis-server.js';
import { steadyClock } from '../ports/stores.js';
import { RedisApprovalStore } from './approvals.js';
import { RedisBudgetStore, RedisRateLimiters } from './limits.js';
import { RedisClock } from './redis-clock.js';
import { RedisConnection } from './redis-connection.js';

const FIVE_MINUTES = 300_000;
const TTL = 60_000;
const yes = { approved: true, by: 'key:2', at: 1 };

let redis: RedisServer;
const connections: RedisConnection[] = [];
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  for (const connection of connections) connection.close();
  await redis.stop();
});

const connect = async (prefix = 'skew') => {
  const connection = new RedisConnection({ url: redis.url, prefix }, 'commands', { warn: () => undefined });
  await connection.open(10_000);
  connections.push(connection);
  return connection;
};

describe('approvals of replicas whose clocks differ', () => {
  const replica = async (ahead: number) => {
    const connection = await connect();
    const now = () => steadyClock() + ahead;
    const clock = new RedisClock(connection, { warn: () => undefined }, { steady: now, wall: now });
    await clock.measure();
    clock.close();
    return { now, store: new RedisApprovalStore(connection, () => clock.now(), now) };
  };

  it.each([
    [FIVE_MINUTES, 0],
    [-FIVE_MINUTES, 0],
    [-FIVE_MINUTES, FIVE_MINUTES],
    [FIVE_MINUTES, -FIVE_MINUTES],
  ])('are shown, decided and used on the other one: %i and %i ms', async (one, other) => {
    const [here, there] = await Promise.all([replica(one), replica(other)]);
    const { opened } = await here.store.open(createDraft({ subject: `${one} ${other}` }), TTL);
    const shown = await there.store.find(opened.id);
    // One minute from now on the other clock.
    expect(Math.abs((shown?.expiresAt ?? 0) - there.now() - TTL)).toBeLessThan(10_000);
    expect(Math.abs(opened.expiresAt - here.now() - TTL)).toBeLessThan(10_000);
    expect((await there.store.listPending('acme')).map(({ id }) => id)).toContain(opened.id);
    expect(await there.store.decide(opened.id, yes)).toBe('decided');
    expect(await here.store.use(opened.id)).toBe(true);
    expect(await there.store.use(opened.id)).toBe(false);
  });
});

describe('the clock that replicas share', () => {
  it.each([FIVE_MINUTES, -FIVE_MINUTES])('is the same where a machine differs by %i ms', async (ahead) => {
    const connection = await connect();
    const warnings: string[] = [];
    const clocks = { steady: () => steadyClock() + ahead, wall: () => Date.now() + ahead };
    const clock = new RedisClock(connection, { warn: (text) => void warnings.push(text) }, clocks);
    await clock.measure();
    expect(Math.abs(clock.now() - Date.now())).toBeLessThan(1_000);
    await clock.measure();
    expect(warnings).toEqual([
      expect.stringContaining(`300 s ${ahead > 0 ? 'ahead of' : 'behind'} that of Redis`),
    ]);
    clocks.wall = Date.now;
    await clock.measure();
    expect(warnings.at(-1)).toContain('agrees with that of Redis again');
    clock.close();
  });

  it('does not change with the clock of the machine, and goes on without Redis', async () => {
    const connection = await connect();
    const clocks = { steady: steadyClock, wall: Date.now };
    const clock = new RedisClock(connection, { warn: () => undefined }, clocks);
    await clock.measure();
    clocks.wall = () => Date.now() - FIVE_MINUTES;
    connection.close();
    await clock.measure();
    expect(Math.abs(clock.now() - Date.now())).toBeLessThan(1_000);
    clock.close();
  });

  it('is not set by an answer that came late', async () => {
    const connection = await connect();
    let late = 0;
    const clocks = { steady: () => steadyClock() + (late += 4_000), wall: Date.now };
    const clock = new RedisClock(connection, { warn: () => undefined }, clocks);
    const before = clock.now() - steadyClock();
    await clock.measure();
    // Two readings of the clock, no correction.
    expect(clock.now() - steadyClock() - before).toBeCloseTo(12_000, -2);
    clock.close();
  });
});

/** What Redis holds as if its clock had been set back meanwhile. */
describe.concurrent('after the clock of Redis was set back', () => {
  const WINDOW = 2;

  it.for([10, 600, 100_000])(
    'by %i s, a rate limit refuses no longer than its window',
    async (seconds, { expect }) => {
      const connection = await connect(`back-${seconds}`);
      const limiter = new RedisRateLimiters(connection).limiter('calls', { limit: 3, window: WINDOW });
      for (let call = 0; call < 3; call += 1) expect(await limiter.check('ann')).toBeNull();
      await connection.send(async (client) => {
        const [key = ''] = await client.keys(`back-${seconds}:{rate:*`);
        const times = await client.lrange(key, 0, -1);
        for (const [index, time] of times.entries())
          await client.lset(key, index, String(Number(time) + seconds * 1_000_000));
        await client.persist(key);
      });
      const { used, retryAfter } = await limiter.usage('ann');
      expect(used).toBe(3);
      expect(retryAfter).toBeLessThanOrEqual(WINDOW);
      const refused = await limiter.check('ann');
      expect(refused?.retryAfter).toBeGreaterThan(0);
      expect(refused?.retryAfter).toBeLessThanOrEqual(WINDOW);
      await expect.poll(() => limiter.check('ann'), { timeout: 2 * WINDOW * 1000, interval: 100 }).toBeNull();
    },
  );

  it('a data budget refuses no longer than its window and one step', async ({ expect }) => {
    const connection = await connect('back');
    const store = new RedisBudgetStore(connection);
    const budget = { limits: { rows: 10 }, window: WINDOW };
    await store.charge('ann', budget, { rows: 10 });
    await connection.send(async (client) => {
      const [key = ''] = await client.keys('back:{budget:*');
      const uses = await client.hgetall(key);
      await client.hdel(key, ...Object.keys(uses));
      for (const [field, amount] of Object.entries(uses)) {
        const [step, quantity] = field.split(':');
        await client.hset(key, `${Number(step) + 10_000}:${quantity}`, amount);
      }
      await client.persist(key);
    });
    const refused = await store.admit('ann', budget);
    expect(refused?.retryAfter).toBeGreaterThan(0);
    expect(refused?.retryAfter).toBeLessThanOrEqual(2 * WINDOW);
    expect((await store.readUse('ann', budget)).rows).toBe(10);
    await expect
      .poll(() => store.admit('ann', budget), { timeout: 3 * WINDOW * 1000, interval: 100 })
      .toBeNull();
  });
});
