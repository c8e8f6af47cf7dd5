import { randomBytes } from 'node:crypto';
import type { BudgetStore, RateLimiters } from '#core';
import type { ApprovalStore } from './approvals.js';
import type { MessageBus, OneTimeStore, VersionedStore } from './stores.js';
import type { SessionStore, StreamLog, SubscriptionStore } from './sessions.js';

/** Called when the shared state becomes unavailable or available again. Never receives a URL or a password. */
export interface SharedStateLog {
  warn(message: string): void;
}

/** The keys of a prefix in Redis belong to an installation with another database. */
export class ForeignInstallation extends Error {
  override readonly name = 'ForeignInstallation';

  /** @param key holds whose keys they are */
  constructor(readonly key: string) {
    super(
      `an installation with another database has these keys: write another redis.prefix. If this installation's own database was moved, delete the key ${key}`,
    );
  }
}

/** Redis refuses the database that its URL names. */
export class MissingDatabase extends Error {
  override readonly name = 'MissingDatabase';

  /** @param reason the words of Redis */
  constructor(database: number, reason: string) {
    super(
      `the server refuses database ${database} (${reason}): write a number below its \`databases\`, or none for database 0`,
    );
  }
}

/** Every port over one store: this process's memory, or Redis for all replicas. */
export abstract class SharedState {
  /** Whether replicas share the state: with `process`, each replica has its own. */
  abstract readonly reach: 'process' | 'replicas';
  /**
   * Milliseconds since 1970 on the clock that the replicas share, for times that one of them stores and another compares. A
   * change of this machine's clock does not change it.
   */
  abstract readonly clock: () => number;
  /** MCP sessions, their owners and their expiry. */
  abstract readonly sessions: SessionStore;
  /** Messages from one replica to all others: cancellations, replies of clients, changes. */
  abstract readonly bus: MessageBus;
  /** Values that only the first caller can take. */
  abstract readonly oneTime: OneTimeStore;
  /** Frames of answers in progress, so that a client that lost its stream gets the rest. */
  abstract readonly streams: StreamLog;
  /** Which sessions subscribed to which resources. */
  abstract readonly subscriptions: SubscriptionStore;
  /** Background tasks and their results. */
  abstract readonly tasks: VersionedStore;
  /** Pending exports and their owners. */
  abstract readonly exports: VersionedStore;
  /** Sessions of operators that were signed out before their expiry. */
  abstract readonly endedSessions: VersionedStore;
  /** The current positions of the chains of audit records. */
  abstract readonly auditChains: VersionedStore;
  /** Grants that were revoked before their expiry, and the agents that are suspended. */
  abstract readonly revocations: VersionedStore;
  /** Keys of writes and the results of these writes. */
  abstract readonly writeKeys: VersionedStore;
  /** What the console counted over time. */
  abstract readonly history: VersionedStore;
  /** Counts of rate limits. */
  abstract readonly limiters: RateLimiters;
  /** Data used by principals. */
  abstract readonly budgets: BudgetStore;
  /** Calls that wait for approval, and the decisions. */
  abstract readonly approvals: ApprovalStore;
  /** Secrets that all replicas share, created by the first that requests one. */
  abstract readonly secrets: SharedSecrets;
  /** Whether the state is available now, checked on every call. Never throws. */
  abstract isUp(): Promise<boolean>;
  /** Closes its connections. Stored data stays available to other replicas. */
  abstract close(): Promise<void>;
}

/** Bytes of a secret. */
export const SECRET_SIZE = 32;

/** Random secrets that all replicas have in common. */
export abstract class SharedSecrets {
  /** The same secret for every replica that requests this name, created by the first. @throws SharedStateUnavailable */
  abstract secret(name: string): Promise<Buffer>;
}

/** Secrets of this process: no other replica has them, and they are lost with it. */
export class ProcessSecrets extends SharedSecrets {
  private readonly secrets = new Map<string, Buffer>();

  secret(name: string): Promise<Buffer> {
    const known = this.secrets.get(name) ?? randomBytes(SECRET_SIZE);
    this.secrets.set(name, known);
    return Promise.resolve(known);
  }
}
