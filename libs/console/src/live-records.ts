import { cutText } from '#core';
import { randomUUID } from 'node:crypto';
import { merge, Observable, Subject, type Subscription } from 'rxjs';
import { type ApprovalRecord, type AuditEvent, type AuditRecord, AuditSink, toStoredForm } from '#audit';
import type { BusMessage, MessageBus } from '#state';

/** A record for display: selected members without values, long text cut. */
type ShownRecord = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** The displayed members. A member that a later version adds is not displayed by itself. */
const SHOWN_MEMBERS = (
  'type at tool class_name joined_classes success agent_name principal tenant_id permissions auth_type args_keys gate error_code ' +
  'denial_kind cause duration_ms database_ms rows result_size policy_version correlation_id request_id trace_id ' +
  'approver impersonated_user_id agent_depth outcome via approval_id reason action target ' +
  'remote_address suppressed task_id prompt_injection_phrase identity'
).split(' ');

const MAX_TEXT = 300;
const MAX_NAMES = 32;

type Recorded = (AuditRecord | ApprovalRecord | AuditEvent) & { readonly type: string };

export function toShownRecord(entry: Recorded): ShownRecord {
  // What an error may quote is in the log alone, as with the records that are kept.
  const fields = toStoredForm(entry) as unknown as Readonly<Record<string, unknown>>;
  const shown: [string, string | number | boolean | readonly string[]][] = [];
  for (const name of SHOWN_MEMBERS) {
    const value = cut(fields[name]);
    if (value !== undefined) shown.push([name, value]);
  }
  return Object.fromEntries(shown);
}

function cut(value: unknown): string | number | boolean | readonly string[] | undefined {
  if (typeof value === 'string') return value.length > MAX_TEXT ? `${cutText(value, MAX_TEXT)}…` : value;
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  if (!Array.isArray(value)) return undefined;
  return value.slice(0, MAX_NAMES).map((name) => cutText(String(name), MAX_TEXT));
}

/** Topic of watchers. A watcher repeats its announcement, because a message may be lost. */
const WATCHED_TOPIC = 'console.watched';
const RECORDS = 'console.records';

interface LiveSettings {
  /** Milliseconds between two announcements of a watcher. Default 5,000. */
  readonly announceInterval: number;
  /** Milliseconds that a replica publishes after the last announcement. Default 15,000. */
  readonly watchPeriod: number;
  /** Milliseconds that records are collected before they are published. Default 250. */
  readonly batchInterval: number;
  /** Maximum number of records per batch; further ones are counted. Default 50. */
  readonly maxRecords: number;
}

const DEFAULTS: LiveSettings = {
  announceInterval: 5_000,
  watchPeriod: 15_000,
  batchInterval: 250,
  maxRecords: 50,
};

/** Records of one replica within one interval. */
export interface LiveBatch {
  readonly replica: string;
  readonly records: readonly ShownRecord[];
  /** Number of further records that are not in the batch. */
  readonly missed: number;
}

/**
 * Publishes the records of this replica to watchers on every replica, and nothing while nobody watches. The volume is
 * bounded: under load most records are counted, not sent.
 */
export class LiveRecords extends AuditSink {
  /** Id of this process, in everything that the console says of it. */
  readonly replica = randomUUID().slice(0, 8);
  private readonly settings: LiveSettings;
  private readonly listening: Subscription;
  private watchedUntil = -Infinity;
  private gathered: ShownRecord[] = [];
  private missed = 0;
  private timer: NodeJS.Timeout | null = null;
  /** Batches of this replica that the bus did not take: its own watchers see them all the same. */
  private readonly unsent = new Subject<BusMessage>();

  /** @param now milliseconds of a monotonic clock */
  constructor(
    private readonly bus: MessageBus,
    settings: Partial<LiveSettings> = {},
    private readonly now: () => number = () => performance.now(),
  ) {
    super();
    this.settings = { ...DEFAULTS, ...settings };
    this.listening = bus.messages(WATCHED_TOPIC).subscribe(() => this.extendWatch());
  }

  /** Whether a watcher has announced itself recently. */
  get isWatched(): boolean {
    return this.now() < this.watchedUntil;
  }

  record(entry: AuditRecord): void {
    if (this.isWatched)
      this.gather({ type: entry.tool === 'export_read' ? 'export_read' : 'tool_call', ...entry });
  }

  override recordApproval(entry: ApprovalRecord): void {
    const kept = { type: 'approval', success: entry.outcome === 'approve', ...entry };
    if (this.isWatched) this.gather(kept);
  }

  override recordEvent(event: AuditEvent): void {
    if (this.isWatched) this.gather(event);
  }

  /** Records of every replica from now on, including this one. */
  watch(): Observable<LiveBatch> {
    return new Observable((watcher) => {
      const batches = merge(this.bus.messages(RECORDS), this.unsent).subscribe((message) => {
        const batch = readBatch(message);
        if (batch) watcher.next(batch);
      });
      const announce = () => {
        this.extendWatch();
        void this.bus.publish(WATCHED_TOPIC, {}).catch(() => undefined);
      };
      announce();
      const timer = setInterval(announce, this.settings.announceInterval);
      timer.unref();
      return () => {
        clearInterval(timer);
        batches.unsubscribe();
      };
    });
  }

  close(): void {
    this.listening.unsubscribe();
    if (this.timer !== null) clearTimeout(this.timer);
    this.watchedUntil = -Infinity;
  }

  private extendWatch(): void {
    this.watchedUntil = this.now() + this.settings.watchPeriod;
  }

  private gather(entry: Parameters<typeof toShownRecord>[0]): void {
    if (this.gathered.length < this.settings.maxRecords) this.gathered.push(toShownRecord(entry));
    else this.missed += 1;
    if (this.timer !== null) return;
    this.timer = setTimeout(() => this.publish(), this.settings.batchInterval);
    this.timer.unref();
  }

  private publish(): void {
    this.timer = null;
    const { replica, gathered: records, missed } = this;
    this.gathered = [];
    this.missed = 0;
    const batch = { replica, records, missed };
    void this.bus.publish(RECORDS, batch).catch(() => this.unsent.next(batch));
  }
}

/** A batch of another version of Parley may have another form and is ignored. */
function readBatch({ replica, records, missed }: BusMessage): LiveBatch | undefined {
  if (typeof replica !== 'string' || !Array.isArray(records) || typeof missed !== 'number') return undefined;
  return { replica, records: records as ShownRecord[], missed };
}
