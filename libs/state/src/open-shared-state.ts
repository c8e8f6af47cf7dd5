import { ProcessRateLimiters } from '#core';
import { ProcessApprovalStore } from './memory/approvals.js';
import { ProcessSessionStore, ProcessStreamLog, ProcessSubscriptionStore } from './memory/sessions.js';
import {
  ProcessBudgetStore,
  ProcessMessageBus,
  ProcessOneTimeStore,
  ProcessVersionedStore,
} from './memory/stores.js';
import { hasRedis, type RedisSettings } from '#core';
import { ENDED_SESSION_SHARE, steadyClock } from './ports/stores.js';
import { ProcessSecrets, type SharedState, type SharedStateLog } from './ports/shared-state.js';
import type { RedisFacts } from './redis/redis-facts.js';

/**
 * Reads server information of every primary of Redis; only this function loads the client.
 * @throws SharedStateUnavailable with the reason when it does not answer; TypeError when an address cannot be parsed, which
 * the message does not repeat
 */
export async function inspectRedis(settings: RedisSettings): Promise<readonly RedisFacts[]> {
  const { readRedisFacts } = await import('./redis/open-redis-state.js');
  return readRedisFacts(settings);
}

export interface SharedStateOptions extends RedisSettings {
  readonly log: SharedStateLog;
  /**
   * Where the data of this installation is, each place as one text; those of its replicas have one in common. The keys of a prefix belong to
   * one installation. Default: not compared.
   */
  readonly installation?: readonly string[];
}

/** State of this process: it serves one process only. */
export function processState(): SharedState {
  return {
    reach: 'process',
    clock: steadyClock,
    sessions: new ProcessSessionStore(),
    bus: new ProcessMessageBus(),
    oneTime: new ProcessOneTimeStore(),
    streams: new ProcessStreamLog(),
    subscriptions: new ProcessSubscriptionStore(),
    tasks: new ProcessVersionedStore(),
    exports: new ProcessVersionedStore(),
    endedSessions: new ProcessVersionedStore(10_000, undefined, undefined, ENDED_SESSION_SHARE),
    auditChains: new ProcessVersionedStore(),
    revocations: new ProcessVersionedStore(),
    writeKeys: new ProcessVersionedStore(100_000),
    history: new ProcessVersionedStore(),
    limiters: new ProcessRateLimiters(),
    budgets: new ProcessBudgetStore(),
    approvals: new ProcessApprovalStore(),
    secrets: new ProcessSecrets(),
    isUp: () => Promise.resolve(true),
    close: () => Promise.resolve(),
  };
}

/**
 * Opens the state that replicas share. An unavailable Redis does not prevent the start: operations that need it fail until it
 * is available. The Redis client is loaded only when there is an address.
 * @throws TypeError when an address cannot be parsed; the message does not repeat it
 * @throws ForeignInstallation when the keys belong to another installation; MissingDatabase where the server refuses the database of the URL
 */
export async function openSharedState({
  log,
  installation = [],
  ...settings
}: SharedStateOptions): Promise<SharedState> {
  if (!hasRedis(settings)) return processState();
  const { openRedisState } = await import('./redis/open-redis-state.js');
  return openRedisState(settings, log, installation);
}

/** The client of Redis, for libs that send commands of their own. Loaded only where it is called. */
export const loadRedisClient = () => import('./redis/redis-client.js');
