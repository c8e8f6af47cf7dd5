import { ProcessRateLimiters } from '#core';
import { ProcessApprovalStore } from './memory/approvals.js';
import { ProcessBudgetLedger } from './memory/budgets.js';
import { ProcessSessionStore, ProcessStreamLog, ProcessSubscriptionStore } from './memory/sessions.js';
import { ProcessOneTimeStore, ProcessVersionedStore } from './memory/stores.js';
import { ENDED_SESSION_SHARE } from './ports/bounds.js';
import { ProcessMessageBus } from './memory/message-bus.js';
import { ProcessSecrets, type SharedState, type SharedStateLog } from './ports/shared-state.js';

/** What an operator should know of the Redis that is configured. */
export interface RedisFacts {
  readonly version: string;
  /** Whether what it holds outlives it: every write, from time to time, not at all; null: it does not say. */
  readonly persistence: 'append-only file' | 'snapshots' | 'none' | null;
  /** What it does when its memory is full, such as `noeviction`; null: it does not say. */
  readonly eviction: string | null;
  /** Bytes it may use; 0: all there are. */
  readonly maxMemory: number;
  /** Milliseconds that its clock is ahead of ours, to within the time of the answer. */
  readonly clockAhead: number;
}

/**
 * Asks Redis about itself; the client is loaded only here.
 * @throws SharedStateUnavailable when it does not answer; TypeError when the URL cannot be read, which is not repeated
 */
export async function inspectRedis(url: string): Promise<RedisFacts> {
  const { readRedisFacts } = await import('./redis/redis-facts.js');
  return readRedisFacts(url);
}

export interface SharedStateOptions {
  /** `redis://` or `rediss://`; null: this process's memory. */
  readonly url: string | null;
  /** What every key and channel begins with: installations on one Redis need different ones. Default `parley`. */
  readonly prefix?: string;
  readonly log: SharedStateLog;
}

/** State of this process: it serves one process only. */
export function processState(): SharedState {
  return {
    reach: 'process',
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
    limiters: new ProcessRateLimiters(),
    budgets: new ProcessBudgetLedger(),
    approvals: new ProcessApprovalStore(),
    secrets: new ProcessSecrets(),
    isUp: () => Promise.resolve(true),
    close: () => Promise.resolve(),
  };
}

/**
 * Opens the state that replicas share. A Redis that is away does not stop the start: what needs it fails until it is there.
 * The Redis client is loaded only when there is a URL.
 * @throws TypeError when the URL cannot be read; it is not repeated
 */
export async function openSharedState({ url, prefix, log }: SharedStateOptions): Promise<SharedState> {
  if (url === null) return processState();
  const { openRedisState } = await import('./redis/open-redis-state.js');
  return openRedisState({ url, ...(prefix !== undefined && { prefix }) }, log);
}
