import { randomBytes } from 'node:crypto';
import type { BudgetLedger, RateLimiters } from '#core';
import type { ApprovalDesk } from './approvals.js';
import type { MessageBus } from './message-bus.js';
import type { SessionStore } from './sessions.js';
import type { OneTimeStore, VersionedStore } from './stores.js';
import type { StreamLog, SubscriptionBook } from './streams.js';

/** Receives that the shared state went away or came back. Never gets a URL or a password. */
export interface SharedStateLog {
  warn(message: string): void;
}

/** Every port over one place: this process's memory, or Redis for all replicas. */
export abstract class SharedState {
  /** Whose state it is: with `process`, a second replica would know nothing of it. */
  abstract readonly reach: 'process' | 'replicas';
  /** MCP sessions, whose they are, and when they end. */
  abstract readonly sessions: SessionStore;
  /** Messages from one replica to all others: cancellations, replies of clients, changes. */
  abstract readonly bus: MessageBus;
  /** Values that can be taken once, by the first taker. */
  abstract readonly oneTime: OneTimeStore;
  /** Answers on their way, so that a client which lost its stream gets the rest. */
  abstract readonly streams: StreamLog;
  /** Which sessions subscribed to which resources. */
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
  /** Keys of writes, and what came of them. */
  abstract readonly writeKeys: VersionedStore;
  /** Where rate limits are counted. */
  abstract readonly limiters: RateLimiters;
  /** What principals took of the data. */
  abstract readonly budgets: BudgetLedger;
  /** Calls that wait for a person, and what was decided. */
  abstract readonly approvals: ApprovalDesk;
  /** Keys that every replica must have alike, made by the first that asks. */
  abstract readonly secrets: SharedSecrets;
  /** Whether it can be used at this moment, asked anew. Never throws. */
  abstract isUp(): Promise<boolean>;
  /** Ends its connections. What it keeps stays where another replica can find it. */
  abstract close(): Promise<void>;
}

/** Bytes of a secret. */
export const SECRET_SIZE = 32;

/** Random secrets that all replicas have in common. */
export abstract class SharedSecrets {
  /** The same for every replica that asks by this name, made by the first. @throws SharedStateUnavailable */
  abstract secret(name: string): Promise<Buffer>;
}

/** Secrets of this process: no other replica has them, and they end with it. */
export class ProcessSecrets extends SharedSecrets {
  private readonly secrets = new Map<string, Buffer>();

  secret(name: string): Promise<Buffer> {
    const known = this.secrets.get(name) ?? randomBytes(SECRET_SIZE);
    this.secrets.set(name, known);
    return Promise.resolve(known);
  }
}
