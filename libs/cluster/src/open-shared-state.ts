import { ProcessRateLimiters } from '#agent';
import { ProcessApprovalDesk } from './process-approval-desk.js';
import { ProcessBudgetLedger } from './process-budget-ledger.js';
import { ProcessMessageBus } from './process-message-bus.js';
import { ProcessOneTimeStore } from './process-one-time-store.js';
import { ProcessSessionStore } from './process-session-store.js';
import { ProcessStreamLog } from './process-stream-log.js';
import { ProcessSubscriptionBook } from './process-subscription-book.js';
import { ProcessVersionedStore } from './process-versioned-store.js';
import { ProcessSecrets } from './shared-secrets.js';
import { ENDED_SESSION_SHARE } from './shares.js';
import type { SharedState, SharedStateLog } from './shared-state.js';

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
    subscriptions: new ProcessSubscriptionBook(),
    tasks: new ProcessVersionedStore(),
    exports: new ProcessVersionedStore(),
    endedSessions: new ProcessVersionedStore(10_000, undefined, undefined, ENDED_SESSION_SHARE),
    auditChains: new ProcessVersionedStore(),
    revocations: new ProcessVersionedStore(),
    writeKeys: new ProcessVersionedStore(100_000),
    limiters: new ProcessRateLimiters(),
    budgets: new ProcessBudgetLedger(),
    approvals: new ProcessApprovalDesk(),
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
