import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { draftOf } from '../contracts/approval-store.contract.js';
import { type RedisServer, startRedis } from '../contracts/redis-server.js';
import { steadyClock } from '../ports/stores.js';
import { RedisApprovalStore } from './approvals.js';
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

describe('approvals of replicas whose clocks differ', () => {
  const replica = async (ahead: number) => {
    const settings = { url: redis.url, prefix: 'skew' };
    const connection = new RedisConnection(settings, 'commands', { warn: () => undefined });
    await connection.open(10_000);
    connections.push(connection);
    const now = () => steadyClock() + ahead;
    return { now, store: new RedisApprovalStore(connection, now) };
  };

  it.each([
    [FIVE_MINUTES, 0],
    [-FIVE_MINUTES, 0],
    [-FIVE_MINUTES, FIVE_MINUTES],
    [FIVE_MINUTES, -FIVE_MINUTES],
  ])('are shown, decided and used on the other one: %i and %i ms', async (one, other) => {
    const [here, there] = await Promise.all([replica(one), replica(other)]);
    const { opened } = await here.store.open(draftOf({ subject: `${one} ${other}` }), TTL);
    const shown = await there.store.find(opened.id);
    // One minute from now on the other clock.
    expect(Math.abs((shown?.expiresAt ?? 0) - there.now() - TTL)).toBeLessThan(10_000);
    expect(Math.abs(opened.expiresAt - here.now() - TTL)).toBeLessThan(10_000);
    expect((await there.store.pending('acme')).map(({ id }) => id)).toContain(opened.id);
    expect(await there.store.decide(opened.id, yes)).toBe('decided');
    expect(await here.store.use(opened.id)).toBe(true);
    expect(await there.store.use(opened.id)).toBe(false);
  });
});
