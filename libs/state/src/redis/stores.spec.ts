import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { approvalStoreContract, createDraft, TIGHT_DECIDED } from '../contracts/approval-store.contract.js';
import { budgetStoreContract } from '../contracts/budget-store.contract.js';
import { messageBusContract } from '../contracts/message-bus.contract.js';
import { oneTimeStoreContract, TIGHT_ONE_TIME } from '../contracts/one-time-store.contract.js';
import { rateLimitersContract } from '../contracts/rate-limiters.contract.js';
import {
  openClusterFixture,
  openGuardedFixture,
  openRedisFixture,
  type RedisFixture,
} from '../contracts/redis.fixture.js';
import { sessionStoreContract } from '../contracts/session-store.contract.js';
import { streamLogContract, TIGHT_LOG, TIGHT_STREAMS } from '../contracts/stream-log.contract.js';
import { subscriptionStoreContract } from '../contracts/subscription-store.contract.js';
import { TIGHT_RECORDS, versionedStoreContract } from '../contracts/versioned-store.contract.js';
import type { SharedState } from '../ports/shared-state.js';
import { RedisApprovalStore } from './approvals.js';
import { RedisConnection } from './redis-connection.js';
import { RedisSessionStore, RedisStreamLog } from './sessions.js';
import { RedisOneTimeStore, RedisVersionedStore } from './stores.js';

const silent = { warn: () => undefined };

describe.each([
  ['one server', openRedisFixture],
  ['a server with TLS and a user of its own', openGuardedFixture],
  ['a cluster of three nodes', openClusterFixture],
])('with %s', (_, openFixture) => {
  let room: RedisFixture;
  beforeAll(async () => {
    room = await openFixture();
  }, 60_000);
  afterEach(() => room.leave());
  afterAll(() => room.close());

  function createPort<Port>(pick: (state: SharedState) => Port) {
    return async () => {
      const prefix = room.freshPrefix();
      const state = await room.enter(prefix);
      return { port: pick(state), pass: (milliseconds: number) => room.pass(prefix, milliseconds) };
    };
  }

  messageBusContract('RedisMessageBus', async () => {
    const prefix = room.freshPrefix();
    return [(await room.enter(prefix)).bus, (await room.enter(prefix)).bus];
  });
  subscriptionStoreContract(
    'RedisSubscriptionStore',
    createPort((state) => state.subscriptions),
  );
  budgetStoreContract(
    'RedisBudgetStore',
    createPort((state) => state.budgets),
    10,
  );
  rateLimitersContract(
    'RedisRateLimiters',
    createPort((state) => state.limiters),
    { runs: 15 },
  );

  describe('with tight limits', () => {
    const open: RedisConnection[] = [];
    afterEach(() => open.splice(0).forEach((connection) => connection.close()));
    function tight<Port>(port: (connection: RedisConnection) => Port) {
      return async () => {
        const prefix = room.freshPrefix();
        const connection = new RedisConnection({ ...room.settings, prefix }, 'commands', silent);
        open.push(connection);
        await connection.open(10_000);
        return { port: port(connection), pass: (milliseconds: number) => room.pass(prefix, milliseconds) };
      };
    }
    approvalStoreContract(
      'RedisApprovalStore',
      tight((connection) => new RedisApprovalStore(connection, undefined, undefined, TIGHT_DECIDED)),
    );
    streamLogContract(
      'RedisStreamLog',
      tight((connection) => new RedisStreamLog(connection, TIGHT_LOG, TIGHT_STREAMS)),
    );
    oneTimeStoreContract(
      'RedisOneTimeStore',
      tight((connection) => new RedisOneTimeStore(connection, TIGHT_ONE_TIME)),
    );
    sessionStoreContract(
      'RedisSessionStore',
      tight((connection) => new RedisSessionStore(connection, undefined, { entries: 3 })),
    );
    versionedStoreContract(
      'RedisVersionedStore',
      tight((connection) => new RedisVersionedStore(connection, 'record', TIGHT_RECORDS)),
    );
  });

  describe('what Redis holds', () => {
    it('always ends by itself', async () => {
      const prefix = room.freshPrefix();
      const { sessions, oneTime, streams, tasks, subscriptions } = await room.enter(prefix);
      await sessions.create({ owner: 'ada', version: '2025-11-25', capabilities: {} });
      await subscriptions.add('s', 'parse://A/count', { maxPerSession: 1, maxSessions: 1 });
      await subscriptions.hold('s', 'one');
      await oneTime.keep('k', { n: 1 }, 60_000, 'ada');
      await oneTime.claim('k', 60_000, 'ada');
      await streams.append('s', 'frame', 'ada');
      await tasks.create('t', {}, 60_000, 'ada');
      const keys = await room.keys(prefix);
      // A share with a weight has two keys.
      expect(keys).toHaveLength(11 + 8);
      for (const { key, client } of keys) expect(await client.pttl(key)).toBeGreaterThan(0);
    });

    it('lies under the prefix, with the parts of one thing on one cluster node and no name that a caller chose', async () => {
      const prefix = room.freshPrefix();
      const { sessions, streams } = await room.enter(prefix);
      await sessions.create({
        owner: 'ada',
        version: '1',
        capabilities: {},
        proposedId: 'chosen}by{a caller',
      });
      await streams.append('chosen', 'frame', 'chosen');
      const keys = await room.keys(prefix);
      for (const { key } of keys) {
        expect(key).toMatch(
          /^parley-test-[\w-]+:\{(session|open|stream|share):[\w-]{43}\}(:size|:weights)?$/,
        );
        expect(key).not.toContain('chosen');
      }
      const tags = keys
        .filter(({ key }) => key.includes('{stream'))
        .map(({ key }) => /\{.*?\}/.exec(key)?.[0]);
      expect(tags).toHaveLength(2);
      expect(new Set(tags).size).toBe(1);
    });

    it('is nothing when it is not what we write', async () => {
      const prefix = room.freshPrefix();
      const { sessions, oneTime, streams } = await room.enter(prefix);
      const entry = await streams.append('s', 'frame');
      await oneTime.keep('k', { n: 1 }, 60_000);
      const id = await sessions.create({ owner: 'ada', version: '1', capabilities: {} });
      for (const { key, client } of await room.keys(prefix)) {
        if (key.includes('{session')) await client.hset(key, 'capabilities', '[]');
        if (key.includes('{once')) await client.set(key, '"text"');
        if (key.includes('{stream') && !key.endsWith(':size')) await client.xadd(key, '*', 'other', '1');
      }
      expect(await sessions.find(id)).toBeUndefined();
      expect(await oneTime.take('k')).toBeUndefined();
      expect(await streams.after('s', entry)).toBeUndefined();
    });

    it('keeps an approval and a secret for every replica, also for one that starts later', async () => {
      const prefix = room.freshPrefix();
      const [one, two] = [await room.enter(prefix), await room.enter(prefix)];
      const { opened } = await one.approvals.open(createDraft(), 60_000);
      expect(await two.approvals.decide(opened.id, { approved: true, by: 'eve', at: 1 })).toBe('decided');
      const secrets = await Promise.all([one, two].map(({ secrets: kept }) => kept.secret('state')));
      const later = await room.enter(prefix);
      expect(await later.approvals.find(opened.id)).toMatchObject({ status: 'approved' });
      expect(await later.secrets.secret('state')).toEqual(secrets[0]);
      expect(secrets[1]).toEqual(secrets[0]);
      expect(await later.secrets.secret('other')).not.toEqual(secrets[0]);
      const uses = await Promise.all([one, two, later].map(({ approvals }) => approvals.use(opened.id)));
      expect(uses.filter(Boolean)).toHaveLength(1);
    });

    it('of another installation is not ours', async () => {
      const [one, other] = [await room.enter(), await room.enter()];
      const id = await one.sessions.create({ owner: 'ada', version: '1', capabilities: {} });
      expect(await other.sessions.find(id)).toBeUndefined();
    });
  });
});
