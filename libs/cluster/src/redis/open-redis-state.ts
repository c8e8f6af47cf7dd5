import type { SharedState, SharedStateLog } from '../shared-state.js';
import { ENDED_SESSION_SHARE } from '../shares.js';
import { RedisApprovalDesk } from './redis-approval-desk.js';
import { RedisBudgetLedger } from './redis-budget-ledger.js';
import { RedisConnection, type RedisSettings } from './redis-connection.js';
import { RedisMessageBus } from './redis-message-bus.js';
import { RedisOneTimeStore } from './redis-one-time-store.js';
import { RedisRateLimiters } from './redis-rate-limiters.js';
import { RedisSecrets } from './redis-secrets.js';
import { RedisSessionStore } from './redis-session-store.js';
import { RedisStreamLog } from './redis-stream-log.js';
import { RedisSubscriptionBook } from './redis-subscription-book.js';
import { RedisVersionedStore } from './redis-versioned-store.js';

/** Milliseconds the start waits for Redis. */
const FIRST_CONNECTION = 1_000;

/** State in Redis, for every replica that is given the same URL and prefix. */
export async function openRedisState(settings: RedisSettings, log: SharedStateLog): Promise<SharedState> {
  const commands = new RedisConnection(settings, 'commands', log);
  const subscriptions = new RedisConnection(settings, 'subscriptions', log);
  const bus = new RedisMessageBus({ commands, subscriptions }, log);
  await Promise.all([commands.open(FIRST_CONNECTION), subscriptions.open(FIRST_CONNECTION)]);
  return {
    reach: 'replicas',
    sessions: new RedisSessionStore(commands),
    bus,
    oneTime: new RedisOneTimeStore(commands),
    streams: new RedisStreamLog(commands),
    subscriptions: new RedisSubscriptionBook(commands),
    tasks: new RedisVersionedStore(commands, 'task'),
    exports: new RedisVersionedStore(commands, 'export'),
    endedSessions: new RedisVersionedStore(commands, 'ended', ENDED_SESSION_SHARE),
    auditChains: new RedisVersionedStore(commands, 'audit'),
    revocations: new RedisVersionedStore(commands, 'revoked'),
    writeKeys: new RedisVersionedStore(commands, 'write'),
    limiters: new RedisRateLimiters(commands),
    budgets: new RedisBudgetLedger(commands),
    approvals: new RedisApprovalDesk(commands),
    secrets: new RedisSecrets(commands),
    isUp: async () => {
      if (!subscriptions.isUsable) return false;
      return commands
        .send((redis) => redis.ping())
        .then(
          () => true,
          () => false,
        );
    },
    close: () => {
      bus.close();
      commands.close();
      subscriptions.close();
      return Promise.resolve();
    },
  };
}
