import { ProcessRateLimiters } from '#core';
import { ProcessApprovalStore } from './memory/approvals.js';
import { ProcessSessionStore, ProcessStreamLog, ProcessSubscriptionStore } from './memory/sessions.js';
import {
  ProcessBudgetStore,
  ProcessMessageBus,
  ProcessOneTimeStore,
  ProcessVersionedStore,
} from './memory/stores.js';
import { ENDED_SESSION_SHARE } from './ports/stores.js';
import { ProcessSecrets, type SharedState, type SharedStateLog } from './ports/shared-state.js';

/** What an operator should check about the configured Redis. */
export interface RedisFacts {
  readonly version: string;
  /** Whether its data survives a restart: every write, snapshots, or nothing; null: it is not reported. */
  readonly persistence: 'append-only file' | 'snapshots' | 'none' | null;
  /** The eviction policy when its memory is full, such as `noeviction`; null: it is not reported. */
  readonly eviction: string | null;
  /** Maximum bytes that it may use; 0: no limit. */
  readonly maxMemory: number;
  /** Milliseconds that its clock is ahead of the process clock, accurate to the round-trip time. */
  readonly clockAhead: number;
}

/**
 * Reads server information of Redis; only this function loads the client.
 * @throws SharedStateUnavailable when it does not answer; TypeError when the URL cannot be parsed, which the message does not
 * repeat
 */
export async function inspectRedis(url: string): Promise<RedisFacts> {
  const { readRedisFacts } = await import('./redis/open-redis-state.js');
  return readRedisFacts(url);
}

export interface SharedStateOptions {
  /** `redis://` or `rediss://`; null: this process's memory. */
  readonly url: string | null;
  /** The prefix of every key and channel: installations on one Redis need different prefixes. Default `parley`. */
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
    budgets: new ProcessBudgetStore(),
    approvals: new ProcessApprovalStore(),
    secrets: new ProcessSecrets(),
    isUp: () => Promise.resolve(true),
    close: () => Promise.resolve(),
  };
}

/**
 * Opens the state that replicas share. An unavailable Redis does not prevent the start: operations that need it fail until it
 * is available. The Redis client is loaded only when there is a URL.
 * @throws TypeError when the URL cannot be parsed; the message does not repeat it
 */
export async function openSharedState({ url, prefix, log }: SharedStateOptions): Promise<SharedState> {
  if (url === null) return processState();
  const { openRedisState } = await import('./redis/open-redis-state.js');
  return openRedisState({ url, ...(prefix !== undefined && { prefix }) }, log);
}
