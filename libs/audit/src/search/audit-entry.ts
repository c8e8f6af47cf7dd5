import type { ApprovalRecord, AuditRecord } from '../audit-record.js';
import type { AuditEvent } from '../audit-event.js';

/** Where an entry stands: in the chain of one process, counted from 0. */
export interface AuditPosition {
  readonly chain: string;
  readonly seq: number;
  /** Hash of the record before it in its chain; empty for the first. */
  readonly prev?: string;
  /** Over everything else in it (docs/audit.md). */
  readonly hash?: string;
}

/** A record as it is kept and found; `type` tells which one it is (docs/audit.md). */
export type AuditEntry = AuditPosition & { readonly at: string; readonly success: boolean } & (
    | ({ readonly type: 'tool_call' | 'export_read' } & AuditRecord)
    | ({ readonly type: 'approval' } & ApprovalRecord)
    | AuditEvent
  );

export type AuditEntryType = AuditEntry['type'];
