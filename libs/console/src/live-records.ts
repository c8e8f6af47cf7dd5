import { randomUUID } from 'node:crypto';
import { Observable, type Subscription } from 'rxjs';
import { type ApprovalRecord, type AuditEvent, type AuditRecord, AuditSink } from '#audit';
import type { BusMessage, MessageBus } from '#cluster';
import { type ShownRecord, shownRecord } from './shown-record.js';

/** Somebody watches: said again and again, because what is said once may be lost. */
const WATCHED = 'console.watched';
const RECORDS = 'console.records';

export interface LiveSettings {
  /** Milliseconds between two words of a watcher. Default 5,000. */
  readonly word: number;
  /** Milliseconds that a replica tells after the last one. Default 15,000. */
  readonly memory: number;
  /** Milliseconds that records are gathered before they are told. Default 250. */
  readonly gather: number;
  /** Records that are told at once; what comes meanwhile is only counted. Default 50. */
  readonly most: number;
}

const DEFAULTS: LiveSettings = { word: 5_000, memory: 15_000, gather: 250, most: 50 };

/** Records of one replica within a moment. */
export interface LiveBatch {
  readonly replica: string;
  readonly records: readonly ShownRecord[];
  /** That were recorded besides and are not among them. */
  readonly missed: number;
}

/**
 * Tells watchers on every replica what this one records, and nothing at all while nobody watches. How much it tells is
 * bounded: under load most records are counted, not sent.
 */
export class LiveRecords extends AuditSink {
  private readonly replica = randomUUID().slice(0, 8);
  private readonly settings: LiveSettings;
  private readonly listening: Subscription;
  private watchedUntil = -Infinity;
  private gathered: ShownRecord[] = [];
  private missed = 0;
  private timer: NodeJS.Timeout | null = null;

  /** @param now milliseconds of a monotonic clock */
  constructor(
    private readonly bus: MessageBus,
    settings: Partial<LiveSettings> = {},
    private readonly now: () => number = () => performance.now(),
  ) {
    super();
    this.settings = { ...DEFAULTS, ...settings };
    this.listening = bus.messages(WATCHED).subscribe(() => {
      this.watchedUntil = this.now() + this.settings.memory;
    });
  }

  /** Whether somebody watches, as far as this replica heard. */
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

  /** What every replica records from now on, this one included. */
  watch(): Observable<LiveBatch> {
    return new Observable((watcher) => {
      const heard = this.bus.messages(RECORDS).subscribe((message) => {
        const batch = readBatch(message);
        if (batch) watcher.next(batch);
      });
      const say = () => void this.bus.publish(WATCHED, {}).catch(() => undefined);
      say();
      const timer = setInterval(say, this.settings.word);
      timer.unref();
      return () => {
        clearInterval(timer);
        heard.unsubscribe();
      };
    });
  }

  close(): void {
    this.listening.unsubscribe();
    if (this.timer !== null) clearTimeout(this.timer);
    this.watchedUntil = -Infinity;
  }

  private gather(entry: Parameters<typeof shownRecord>[0]): void {
    if (this.gathered.length < this.settings.most) this.gathered.push(shownRecord(entry));
    else this.missed += 1;
    if (this.timer !== null) return;
    this.timer = setTimeout(() => this.tell(), this.settings.gather);
    this.timer.unref();
  }

  private tell(): void {
    this.timer = null;
    const { replica, gathered: records, missed } = this;
    this.gathered = [];
    this.missed = 0;
    // Who watches while the replicas cannot be reached sees nothing; the records are written down all the same.
    void this.bus.publish(RECORDS, { replica, records, missed }).catch(() => undefined);
  }
}

/** What another version of Parley told may have another form: it is none then. */
function readBatch({ replica, records, missed }: BusMessage): LiveBatch | undefined {
  if (typeof replica !== 'string' || !Array.isArray(records) || typeof missed !== 'number') return undefined;
  return { replica, records: records as ShownRecord[], missed };
}
