import type { AuditEvent } from './audit-event.js';
import type { ApprovalRecord, AuditRecord } from './audit-record.js';

export type Unplaced =
  | ({ readonly type: 'tool_call' | 'export_read' } & AuditRecord)
  | ({ readonly type: 'approval'; readonly success: boolean } & ApprovalRecord)
  | AuditEvent;

const MAX_TEXT = 500;
/** Whose text our rules wrote, or a person: never that of a fault, which may quote a value. */
const FREE_TEXT = ['cause', 'reason', 'target', 'action'] as const;

/** What is kept of a record: private text is cut, and that of faults stays in the log alone. */
export function keptContent(content: Unplaced): Unplaced {
  const kept: Record<string, unknown> = { ...content };
  if (kept['error_code'] === 'internal_error' || kept['error_code'] === 'parse_error') delete kept['cause'];
  for (const name of FREE_TEXT) {
    const text = kept[name];
    if (typeof text === 'string' && text.length > MAX_TEXT) kept[name] = `${text.slice(0, MAX_TEXT)}…`;
  }
  return kept as unknown as Unplaced;
}
