import type { AuditEntry, AuditEntryType } from './audit-entry.js';

/** What to look for; every member that is given must hold. */
export interface AuditQuery {
  /** ISO 8601, included. */
  readonly from?: string;
  /** ISO 8601, not included. */
  readonly to?: string;
  /** What kind of entry. */
  readonly type?: AuditEntryType;
  /** Name of the agent. */
  readonly agent?: string;
  /** Name of the tool that was called. */
  readonly tool?: string;
  /** Who called, as records name them. */
  readonly principal?: string;
  /** As text: a number is found by its digits. */
  readonly tenant?: string;
  /** `failure`: refused or failed. */
  readonly outcome?: 'success' | 'failure';
  /** The gate that refused. */
  readonly gate?: string;
  /** The code of a refusal. */
  readonly code?: string;
  /** Of the request, as its client or the server named it. */
  readonly correlationId?: string;
  /** Of the trace that the call was part of: 32 hexadecimal digits. */
  readonly traceId?: string;
  /** Entries of a page, 1 to 200. Default 50. */
  readonly limit?: number;
  /** Of the page before. */
  readonly cursor?: string;
}

/** What was found, a page at a time. */
export interface AuditPage {
  /** Newest first. */
  readonly entries: readonly AuditEntry[];
  /** Of the next page; null after the last. */
  readonly cursor: string | null;
}

/** A query that cannot be answered: a limit or a cursor that is none. */
export class AuditQueryError extends TypeError {
  /** Stays the same where two copies of the package meet. */
  override readonly name = 'AuditQueryError';
}

/** Where operators find what was recorded. For operators alone: entries hold private causes. */
export abstract class AuditTrail {
  /** How far it reaches back: `recent` is what this process remembers, `kept` a store that outlives it. */
  abstract readonly reach: 'recent' | 'kept';
  /** A page of what was recorded, newest first. @throws AuditQueryError for a limit or a cursor that is none */
  abstract search(query: AuditQuery): Promise<AuditPage>;
}
