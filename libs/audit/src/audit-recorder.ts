import { Injectable, Logger } from '@nestjs/common';
import {
  type ApprovalRecord,
  type AuditEvent,
  type AuditRecord,
  AuditSink,
  type ChainHead,
  type OutageEvent,
} from './audit-record.js';
import type { AuditEntry, RecentAuditTrail } from './audit-trail.js';
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

  /** States of the sinks by name. */
  get states(): ReadonlyMap<string, SinkState> {
    return new Map(this.options.writers.map(({ name, state }) => [name, state]));
  }

  override admit(): number | null {
    if (!this.isDown) return null;
    this.outage.countRefusal();
    return RETRY_AFTER;
  }

  record(record: AuditRecord): Promise<void> | undefined {
    for (const listener of this.options.listeners) {
      try {
        void listener.record(record);
      } catch (error) {
        this.listenerFailed(error);
      }
    }
    return this.enter(record.tool === 'export_read' ? 'export_read' : 'tool_call', record);
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
  private enterUnawaited(type: RecordType, content: RecordContent): void {
    this.enter(type, content)?.catch(() => undefined);
  }

  private enter(type: RecordType, content: RecordContent): Promise<void> | undefined {
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
    const before = this.outage.isOn && !this.isDown ? this.outage.toOutageEvent() : null;
    if (before) this.append(before.type, before)?.catch(() => undefined);
    return this.append(type, content);
  }

  private append(type: RecordType, content: RecordContent): Promise<void> | undefined {
    const { writers, recent } = this.options;
    const sealed = this.chain.append({ type, ...toStoredForm(content) });
    recent.remember(sealed.record as unknown as AuditEntry);
    const waits: Promise<void>[] = [];
    for (const writer of writers) {
      const kept = writer.keep(sealed);
      if (kept) waits.push(kept);
    }
    if (waits.length < 2) return waits[0];
    return Promise.all(waits).then(() => undefined);
  }
}

type RecordType = AuditEntry['type'];
type WithoutType<Event> = Event extends unknown ? Omit<Event, 'type'> : never;
type RecordContent = AuditRecord | (ApprovalRecord & { readonly success: boolean }) | WithoutType<AuditEvent>;

const MAX_TEXT = 500;
/** Members with text of our rules or of a person. Text of an error may quote values, and is removed instead. */
const FREE_TEXT = ['cause', 'reason', 'target', 'action'] as const;

/**
 * Long private text is cut, and causes of internal errors are removed, of a copy. Most content has neither and is returned itself: a
 * copy costs as much as the record.
 */
function toStoredForm<Content extends object>(content: Content): Content {
  const members = content as Record<string, unknown>;
  const { error_code: code } = members;
  const isPrivate = (name: string) =>
    name === 'cause' && (code === 'internal_error' || code === 'parse_error') && members[name] !== undefined;
  const isLong = (text: unknown) => typeof text === 'string' && text.length > MAX_TEXT;
  if (!FREE_TEXT.some((name) => isPrivate(name) || isLong(members[name]))) return content;
  const stored = { ...members };
  for (const name of FREE_TEXT) {
    if (isPrivate(name)) delete stored[name];
    else if (isLong(stored[name])) stored[name] = `${String(stored[name]).slice(0, MAX_TEXT)}…`;
  }
  return stored as unknown as Content;
}

/** A time in which records could not be kept. It is recorded once records can be kept again. */
class Outage {
  private since: string | null = null;
  private refusals = 0;
  private losses = 0;

  get isOn(): boolean {
    return this.since !== null;
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
    return event;
  }

  private begin(): void {
    this.since ??= new Date().toISOString();
  }
}

/**
 * Writes audit records as JSON to the application's log: refusals (with their private cause) and results with a
 * canary as warnings, all others at debug level. Every run with the master key of Parse or an assumed identity adds one
 * line at log level.
 */
@Injectable()
export class LoggerAuditSink extends AuditSink {
  private readonly logger = new Logger('Audit');

  /** @param servesParse false over plain collections alone, where no call has a master key */
  constructor(private readonly servesParse = true) {
    super();
  }

  record(entry: AuditRecord): void {
    const quiet = entry.success && entry.prompt_injection_phrase === undefined;
    const level = quiet ? 'debug' : 'warn';
    if (Logger.isLevelEnabled(level)) this.logger[level](oneLine(JSON.stringify(entry)));
    const mode = entry.success ? this.deriveMode(entry) : null;
    if (mode !== null && Logger.isLevelEnabled('log')) this.logger.log(oneLine(`${entry.tool} ${mode}`));
  }

  /** Always a warning: the call needed an approval. */
  override recordApproval(entry: ApprovalRecord): void {
    this.logger.warn(oneLine(JSON.stringify({ type: 'approval', ...entry })));
  }

  /** Failures are warnings; all other events are written at debug level. */
  override recordEvent(event: AuditEvent): void {
    const level = event.success ? 'debug' : 'warn';
    if (Logger.isLevelEnabled(level)) this.logger[level](oneLine(JSON.stringify(event)));
  }

  /** Describes a run without a signed-in user; null for one with a session. */
  private deriveMode({ auth_type, identity }: AuditRecord): string | null {
    switch (auth_type) {
      case 'master_key':
        return this.servesParse ? 'mode=master_key' : null;
      case 'acl_role':
        return `role=${identity}`;
      case 'acl_user':
        return `user=${identity}`;
      case 'session_token':
        return null;
    }
  }
}

// Control, bidi, zero-width and invisible characters. They could forge a log line, drive a terminal, or hide text from a person
// who has to decide on it.
const UNSAFE_CHARACTERS =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u061C\u115F\u1160\u180E\u200B-\u200F\u2028-\u202E\u2060-\u2064\u2066-\u2069\u3164\uFEFF\uFFA0\n\u{E0000}-\u{E007F}]/gu;

/** Visible ASCII, as nearly every line is: nothing in it is unsafe. */
const PLAIN_TEXT = /^[ -~]*$/;

/** Untrusted text on one log line: unsafe characters are escaped, not removed. */
export function oneLine(text: string): string {
  if (PLAIN_TEXT.test(text)) return text;
  return text.replace(UNSAFE_CHARACTERS, (character) =>
    character === '\n' ? '\\n' : character.split('').map(escapeUnit).join(''),
  );
}

function escapeUnit(unit: string): string {
  const code = unit.charCodeAt(0);
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** Untrusted text on several lines of a terminal: unsafe characters are escaped. */
export function terminalText(text: string): string {
  return wellFormed(text).split('\n').map(oneLine).join('\n');
}

/** Replaces lone surrogates with the replacement character. */
export function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}
