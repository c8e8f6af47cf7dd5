import type { BudgetLedger, RateLimiters } from '#agent';
import type { ApprovalDesk } from './approval-desk.js';
import type { MessageBus } from './message-bus.js';
import type { OneTimeStore } from './one-time-store.js';
import type { SessionStore } from './session-store.js';
import type { SharedSecrets } from './shared-secrets.js';
import type { StreamLog } from './stream-log.js';
import type { SubscriptionBook } from './subscription-book.js';
import type { VersionedStore } from './versioned-store.js';

/** Where the operator reads that the shared state went away or came back. Never told a URL or a password. */
export interface SharedStateLog {
  warn(message: string): void;
}

/** Every port over one place: this process's memory, or Redis for all replicas. */
export abstract class SharedState {
  /** Whose state it is: with `process`, a second replica would know nothing of it. */
  abstract readonly reach: 'process' | 'replicas';
  abstract readonly sessions: SessionStore;
  abstract readonly bus: MessageBus;
  abstract readonly oneTime: OneTimeStore;
  abstract readonly streams: StreamLog;
  abstract readonly subscriptions: SubscriptionBook;
  /** Long calls and what came of them. */
  abstract readonly tasks: VersionedStore;
  /** What was promised to be exported, and to whom. */
  abstract readonly exports: VersionedStore;
  /** Sessions of operators that were signed out before their time. */
  abstract readonly endedSessions: VersionedStore;
  /** How far the chains of audit records have come. */
  abstract readonly auditChains: VersionedStore;
  /** What was taken back before it ended by itself. */
  abstract readonly revocations: VersionedStore;
  abstract readonly limiters: RateLimiters;
  abstract readonly budgets: BudgetLedger;
  abstract readonly approvals: ApprovalDesk;
  abstract readonly secrets: SharedSecrets;
  /** Whether it can be used at this moment, asked anew. Never throws. */
  abstract isUp(): Promise<boolean>;
  abstract close(): Promise<void>;
}
