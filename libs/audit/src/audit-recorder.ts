import { randomBytes } from 'node:crypto';
import { cutText } from '#core';
import {
  type ApprovalRecord,
  type AuditEvent,
  type AuditRecord,
  AuditSink,
  type ChainHead,
  type OutageEvent,
} from './audit-record.js';
import {
  type AuditEntry,
  type AuditEntryType,
  type AuditPage,
  type AuditQuery,
  AuditTrail,
  createMatcher,
  newestFirst,
  readLimit,
  takePage,
} from './audit-trail.js';
import { AuditChain, type RecordSeal } from './chain/audit-chain.js';
import { ChainAnchor, type ChainAnchorStore } from './chain/chain-anchors.js';
import {
  type DeliveryLog,
  RecordNotKept,
  type SinkState,
  type SinkWriter,
} from './delivery/record-delivery.js';

export interface AuditRecorderOptions {
  /** Receive every record as it was made; their failures are ignored. */
  readonly listeners: readonly AuditSink[];
  readonly recent: RecentAuditTrail;
  readonly writers: readonly SinkWriter[];
  readonly seal: RecordSeal;
  /** Null: other processes have no part in this chain. */
  readonly anchors: ChainAnchorStore | null;
  /** Name of this process in the records. */
  readonly replica: string;
  /** Milliseconds between two checks of other chains. */
  readonly anchorInterval: number;
  readonly log: DeliveryLog;
}

/** Seconds after which a refused call may be repeated. */
const RETRY_AFTER = 5;
/** Milliseconds for delivering the remaining records at shutdown. */
const SHUTDOWN_TIMEOUT = 5_000;

/**
 * The entry point of all audit records. It adds each record to the chain of this process and passes it to every sink
 * writer.
 */
export class AuditRecorder extends AuditSink {
  private readonly chain: AuditChain;
  private readonly anchor: ChainAnchor;
  private readonly outage = new Outage();
  private looking: NodeJS.Timeout | undefined;

  constructor(private readonly options: AuditRecorderOptions) {
    super();
    this.chain = new AuditChain(options.seal);
    this.anchor = new ChainAnchor({
      anchors: options.anchors,
      head: () => this.chain.head,
      recordHeads: (heads) => this.recordChainEvent('chain_anchor', heads),
      log: options.log,
    });
  }

  /** Starts the chain. A sink that cannot be reached does not stop the start. */
  async open(): Promise<void> {
    const { writers, anchorInterval } = this.options;
    if (writers.length === 0) return;
    const found = await Promise.all(writers.map((writer) => writer.open()));
    const heads = await this.anchor.before(found.filter((head) => head !== null));
    this.recordChainEvent('chain_begin', heads);
    this.looking = setInterval(() => void this.anchor.look(), anchorInterval).unref();
  }

  /** Ends the chain and delivers the remaining records, for at most five seconds. */
  async close(): Promise<void> {
    clearInterval(this.looking);
    const { writers } = this.options;
    if (writers.length === 0) return;
    this.recordChainEvent('chain_end', []);
    await this.anchor.announce();
    await Promise.all(writers.map((writer) => writer.close(SHUTDOWN_TIMEOUT)));
  }

  get states(): ReadonlyMap<string, SinkState> {
    return new Map(this.options.writers.map(({ name, state }) => [name, state]));
  }

  override admit(): number | null {
    if (!this.isDown) return null;
    this.outage.countRefusal();
    return RETRY_AFTER;
  }

  record(record: AuditRecord, begun = true): Promise<void> | undefined {
    for (const listener of this.options.listeners) {
      try {
        void listener.record(record);
      } catch (error) {
        this.listenerFailed(error);
      }
    }
    return this.enter(record.tool === 'export_read' ? 'export_read' : 'tool_call', record, begun);
  }

  override recordApproval(record: ApprovalRecord): void {
    this.notifyListeners((listener) => listener.recordApproval(record));
    this.enterUnawaited('approval', { success: record.outcome === 'approve', ...record });
  }

  override recordEvent(event: AuditEvent): void {
    this.notifyListeners((listener) => listener.recordEvent(event));
    this.enterUnawaited(event.type, event);
  }

  private get isDown(): boolean {
    return this.options.writers.some(({ state }) => state === 'down');
  }

  private notifyListeners(notify: (listener: AuditSink) => unknown): void {
    for (const listener of this.options.listeners) {
      try {
        notify(listener);
      } catch (error) {
        this.listenerFailed(error);
      }
    }
  }

  private listenerFailed(error: unknown): void {
    this.options.log.warn(`an audit listener failed: ${String(error)}`);
  }

  private recordChainEvent(
    type: 'chain_begin' | 'chain_anchor' | 'chain_end',
    heads: readonly ChainHead[],
  ): void {
    const at = new Date().toISOString();
    this.enterUnawaited(type, { at, success: true, replica: this.options.replica, heads });
  }

  /** Adds a record that no answer depends on. */
  private enterUnawaited(type: AuditEntryType, content: RecordContent): void {
    this.enter(type, content)?.catch(() => undefined);
  }

  /** @param begun false: a call that did nothing, of which a caller makes as many as it likes */
  private enter(type: AuditEntryType, content: RecordContent, begun = true): Promise<void> | undefined {
    const { writers } = this.options;
    // Nothing is sealed or waits where no sink keeps records.
    if (writers.length === 0) {
      this.options.recent.rememberUnsealed(type, toStoredForm(content));
      return undefined;
    }
    if (writers.some(({ isFull }) => isFull)) {
      this.outage.countLoss();
      return Promise.reject(new RecordNotKept('too much waits'));
    }
    if (!begun && writers.some((writer) => writer.isExcess(content))) {
      this.outage.countLoss();
      return Promise.reject(new RecordNotKept('too many refusals of this caller wait'));
    }
    const isDue = type === 'chain_end' ? this.outage.isOn : this.outage.isDue;
    const before = isDue && !this.isDown ? this.outage.toOutageEvent() : null;
    if (before) this.append(before.type, before)?.catch(() => undefined);
    return this.append(type, content, begun);
  }

  private append(type: AuditEntryType, content: RecordContent, begun = true): Promise<void> | undefined {
    const { writers, recent } = this.options;
    const sealed = this.chain.append({ type, ...toStoredForm(content) });
    recent.remember(sealed.record as unknown as AuditEntry);
    const waits: Promise<void>[] = [];
    for (const writer of writers) {
      const kept = writer.keep(sealed, begun);
      if (kept) waits.push(kept);
    }
    if (waits.length < 2) return waits[0];
    return Promise.all(waits).then(() => undefined);
  }
}

type WithoutType<Event> = Event extends unknown ? Omit<Event, 'type'> : never;
type RecordContent = AuditRecord | (ApprovalRecord & { readonly success: boolean }) | WithoutType<AuditEvent>;

const MAX_TEXT = 500;
/** Members with text of our rules or of a person. Text of an error may quote values, and is removed instead. */
const FREE_TEXT = ['cause', 'reason', 'target', 'action'] as const;

/**
 * Long private text is cut, and causes of internal errors are removed, of a copy. Most content has neither and is returned itself: a
 * copy costs as much as the record.
 */
export function toStoredForm<Content extends object>(content: Content): Content {
  const members = content as Record<string, unknown>;
  const { error_code: code } = members;
  const hasPrivateCause = code === 'internal_error' || code === 'parse_error';
  let stored: Record<string, unknown> | undefined;
  for (const name of FREE_TEXT) {
    const text = members[name];
    if (text === undefined) continue;
    if (name === 'cause' && hasPrivateCause) delete (stored ??= { ...members })[name];
    else if (typeof text === 'string' && text.length > MAX_TEXT)
      (stored ??= { ...members })[name] = `${cutText(text, MAX_TEXT)}…`;
  }
  return (stored ?? content) as Content;
}

/** Milliseconds between two records of times in which others were lost. */
const OUTAGE_INTERVAL = 10_000;

/** A time in which records could not be kept. It is recorded once records can be kept again. */
class Outage {
  private since: string | null = null;
  private refusals = 0;
  private losses = 0;
  /** Milliseconds of the monotonic clock. */
  private recordedAt = -Infinity;

  get isOn(): boolean {
    return this.since !== null;
  }

  /** A caller that does not wait makes it go on: its losses are summed up. */
  get isDue(): boolean {
    return this.isOn && performance.now() - this.recordedAt >= OUTAGE_INTERVAL;
  }

  /** Counts a call that was refused because of it. */
  countRefusal(): void {
    this.begin();
    this.refusals += 1;
  }

  /** Counts a record that did not fit the queue. */
  countLoss(): void {
    this.begin();
    this.losses += 1;
  }

  toOutageEvent(): OutageEvent {
    const event: OutageEvent = {
      type: 'outage',
      at: new Date().toISOString(),
      success: false,
      since: this.since ?? new Date().toISOString(),
      refused: this.refusals,
      dropped: this.losses,
    };
    this.since = null;
    this.refusals = 0;
    this.losses = 0;
    this.recordedAt = performance.now();
    return event;
  }

  private begin(): void {
    this.since ??= new Date().toISOString();
  }
}

const DEFAULT_SIZE = 2000;

/** A record as it was made. Its entry is composed when it is searched. */
interface UnsealedRecord {
  readonly type: AuditEntryType;
  readonly content: object;
  readonly seq: number;
}

/** The latest entries of this process; a full trail drops the oldest. Used where no sink can be searched. */
export class RecentAuditTrail extends AuditTrail {
  readonly reach = 'recent';
  /** The chain of unsealed records. */
  private readonly chain = randomBytes(12).toString('hex');
  private readonly entries: (AuditEntry | UnsealedRecord)[] = [];
  private next = 0;
  private unsealed = 0;

  /** @param size maximum number of entries. Default 2000 */
  constructor(private readonly size = DEFAULT_SIZE) {
    super();
  }

  remember(entry: AuditEntry | UnsealedRecord): void {
    this.entries[this.next] = entry;
    this.next = (this.next + 1) % this.size;
  }

  /** A record that stays in this process: a seal would detect changes in a sink. Its number gives its place. */
  rememberUnsealed(type: AuditEntryType, content: object): void {
    this.remember({ type, content, seq: this.unsealed });
    this.unsealed += 1;
  }

  private toEntry(one: AuditEntry | UnsealedRecord): AuditEntry {
    if (!('content' in one)) return one;
    const { type, content, seq } = one;
    return { type, ...content, chain: this.chain, seq } as unknown as AuditEntry;
  }

  search(query: AuditQuery): Promise<AuditPage> {
    return Promise.resolve().then(() => {
      const limit = readLimit(query);
      const entries = this.entries.map((one) => this.toEntry(one)).sort(newestFirst);
      return {
        ...takePage(entries.filter(createMatcher(query)), limit),
        searched: {
          store: 'memory' as const,
          scope: 'replica' as const,
          records: entries.length,
          cut: null,
          back_to: entries.at(-1)?.at ?? null,
        },
      };
    });
  }
}
