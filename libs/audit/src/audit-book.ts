import { randomBytes } from 'node:crypto';
import type { AuditEvent } from './audit-event.js';
import { type ApprovalRecord, type AuditRecord, AuditSink } from './audit-record.js';
import type { AuditEntry } from './search/audit-entry.js';
import type { RecentAuditTrail } from './search/recent-audit-trail.js';

export interface AuditBookParts {
  /** Hears every record as it was made. */
  readonly listeners: readonly AuditSink[];
  readonly recent: RecentAuditTrail;
}

/** Everything that is recorded goes through here and gets its place. */
export class AuditBook extends AuditSink {
  private readonly chain = randomBytes(12).toString('hex');
  private next = 0;

  constructor(private readonly parts: AuditBookParts) {
    super();
  }

  record(record: AuditRecord): void {
    for (const listener of this.parts.listeners) listener.record(record);
    this.enter({ type: record.tool === 'export_read' ? 'export_read' : 'tool_call', ...record });
  }

  override recordApproval(record: ApprovalRecord): void {
    for (const listener of this.parts.listeners) listener.recordApproval(record);
    this.enter({ type: 'approval', success: record.outcome === 'approve', ...record });
  }

  override recordEvent(event: AuditEvent): void {
    for (const listener of this.parts.listeners) listener.recordEvent(event);
    this.enter(event);
  }

  private enter(content: Unplaced<AuditEntry>): void {
    const entry = { chain: this.chain, seq: this.next++, ...content } as AuditEntry;
    this.parts.recent.remember(entry);
  }
}

type Unplaced<T> = T extends unknown ? Omit<T, 'chain' | 'seq'> : never;
