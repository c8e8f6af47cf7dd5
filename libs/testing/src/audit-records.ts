import { type AuditEntry, type AuditRecord, AuditTrail, type Parley } from '@parley/server';

type CallEntry = Extract<AuditEntry, { readonly type: 'tool_call' | 'export_read' }>;

const PAGE = 200;

/** The audit records since the start or the last `reset`: at most the latest 2000 entries. */
export class AuditRecords {
  private from: { readonly chain: string; readonly seq: number } | null = null;

  /** @internal Created by the application. */
  constructor(private readonly parley: Pick<Parley, 'get'>) {}

  /** Calls, approvals and everything else, the oldest first. */
  async entries(): Promise<readonly AuditEntry[]> {
    const trail = this.parley.get<AuditTrail>(AuditTrail);
    const found: AuditEntry[] = [];
    let cursor: string | null | undefined;
    while (cursor !== null) {
      const page: Awaited<ReturnType<AuditTrail['search']>> = await trail.search({
        limit: PAGE,
        ...(cursor !== undefined && { cursor }),
      });
      found.push(...page.entries);
      cursor = page.cursor;
    }
    return found.filter((entry) => this.isNew(entry)).reverse();
  }

  /** The calls among them, the oldest first. */
  async records(): Promise<readonly AuditRecord[]> {
    return (await this.entries()).filter((entry): entry is CallEntry => entry.type === 'tool_call');
  }

  /** The latest call; undefined: there was none. */
  async last(): Promise<AuditRecord | undefined> {
    return (await this.records()).at(-1);
  }

  /**
   * The audit record of a call, without its nested calls.
   * @throws Error when there is none, because it is then unknown whether a gate refused
   */
  async ofCall(tool: string, correlationId: string): Promise<AuditRecord> {
    const trail = this.parley.get<AuditTrail>(AuditTrail);
    const { entries } = await trail.search({ correlationId, type: 'tool_call', limit: PAGE });
    const own = entries.find(
      (entry): entry is CallEntry => entry.type === 'tool_call' && entry.tool === tool,
    );
    if (own) return own;
    throw new Error(
      `no record of the call of ${tool} can be found: does the application bind AuditSink? ` +
        'Without records nothing can be said of gates',
    );
  }

  /** Clears the records. */
  async forget(): Promise<void> {
    const { entries } = await this.parley.get<AuditTrail>(AuditTrail).search({ limit: 1 });
    this.from = entries[0] ?? this.from;
  }

  private isNew({ chain, seq }: AuditEntry): boolean {
    return this.from === null || chain !== this.from.chain || seq > this.from.seq;
  }
}
