import { randomUUID } from 'node:crypto';
import { SESSION_SHARE, STREAM_SHARE } from '../ports/stores.js';
import {
  type LoggedFrame,
  type Session,
  SESSION_TTL,
  type SessionDraft,
  SessionStore,
  STREAM_LOG_LIMITS,
  StreamLog,
  type StreamLogLimits,
  SUBSCRIPTION_TTL,
  type SubscriptionOutcome,
  SubscriptionStore,
  type SubscriptionStoreLimits,
} from '../ports/sessions.js';
import { type Clock, ExpiringMap, MAX_STORED_BYTES, processClock } from './expiring-map.js';

/**
 * Sessions in this process's memory: they serve one process only, and replicas need a shared store.
 * A principal that opens more than its share loses its longest unused session or tombstone; when the store is full, the
 * principal that has the most loses one. A lost id grants nothing any more.
 */
export class ProcessSessionStore extends SessionStore {
  private readonly sessions: ExpiringMap<Session>;

  /**
   * @param maxSessions sessions stored at once, tombstones included. Default 10,000
   * @param maxPerPrincipal of them. Default 1,000
   * @param ttl milliseconds without use after which a session is removed. Default 24 hours
   */
  constructor(
    maxSessions = 10_000,
    private readonly ttl = SESSION_TTL,
    now: Clock = processClock,
    maxPerPrincipal = SESSION_SHARE.entries,
  ) {
    super();
    this.sessions = new ExpiringMap(maxSessions, now, Infinity, { entries: maxPerPrincipal });
  }

  count(): Promise<number> {
    return Promise.resolve(this.sessions.latest(Infinity).filter(([, { terminated }]) => !terminated).length);
  }

  create({ proposedId, ...draft }: SessionDraft): Promise<string> {
    const { owner } = draft;
    const id = proposedId !== undefined && this.mayHave(proposedId, owner) ? proposedId : randomUUID();
    this.keep(id, { ...draft, terminated: false });
    return Promise.resolve(id);
  }

  find(id: string): Promise<Session | undefined> {
    const session = this.sessions.get(id);
    if (session) this.keep(id, session);
    return Promise.resolve(session);
  }

  terminate(id: string): Promise<void> {
    const session = this.sessions.get(id);
    if (session) this.keep(id, { ...session, capabilities: {}, terminated: true });
    return Promise.resolve();
  }

  private mayHave(id: string, owner: string): boolean {
    const holder = this.sessions.get(id);
    return !holder || (holder.owner === owner && !holder.terminated);
  }

  /** Deleting and setting the key keeps the map in order of last use. */
  private keep(id: string, session: Session): void {
    this.sessions.set(id, session, this.ttl, { owner: session.owner });
  }
}

interface LoggedStream {
  readonly frames: LoggedFrame[];
  size: number;
}

/** Stream frames in this process's memory: a stream can be resumed at this process only. */
export class ProcessStreamLog extends StreamLog {
  private readonly streams: ExpiringMap<LoggedStream>;
  private readonly limits: Required<StreamLogLimits>;
  private written = 0;

  /**
   * @param maxStreams streams stored at once; the one written to longest ago is removed first. Default 10,000
   * @param maxBytes of all streams together, in the same way. Default 64 MiB
   * @param share of each owner, whose own streams are removed beyond it
   */
  constructor(
    limits: StreamLogLimits = {},
    maxStreams = 10_000,
    now: Clock = processClock,
    maxBytes = MAX_STORED_BYTES,
    share = STREAM_SHARE,
  ) {
    super();
    this.limits = { ...STREAM_LOG_LIMITS, ...limits };
    this.streams = new ExpiringMap(maxStreams, now, maxBytes, share);
  }

  append(stream: string, frame: string, owner?: string): Promise<string> {
    const { maxFrames, maxSize, ttl } = this.limits;
    const log = this.streams.get(stream) ?? { frames: [], size: 0 };
    // One counter for all streams: a stream that was removed and begun again never repeats an entry.
    this.written += 1;
    const entry = `${this.written}-0`;
    log.frames.push({ entry, frame });
    log.size += Buffer.byteLength(frame);
    while (log.frames.length > maxFrames || (log.size > maxSize && log.frames.length > 1)) {
      log.size -= Buffer.byteLength(log.frames.shift()?.frame ?? '');
    }
    this.streams.set(stream, log, ttl, { weight: log.size, ...(owner !== undefined && { owner }) });
    return Promise.resolve(entry);
  }

  after(stream: string, entry: string): Promise<readonly LoggedFrame[] | undefined> {
    const frames = this.streams.get(stream)?.frames ?? [];
    const at = frames.findIndex((logged) => logged.entry === entry);
    return Promise.resolve(at < 0 ? undefined : frames.slice(at + 1));
  }

  forget(stream: string): Promise<void> {
    this.streams.delete(stream);
    return Promise.resolve();
  }
}

/** The subscriptions of one session. */
interface SessionEntry {
  readonly uris: Set<string>;
  holder: string | undefined;
  /** The principal that subscribed. */
  owner: string | undefined;
  until: number;
}

/** Subscriptions in this process's memory: they serve one process only. */
export class ProcessSubscriptionStore extends SubscriptionStore {
  private readonly sessions = new Map<string, SessionEntry>();

  /**
   * @param ttl milliseconds for which an unused session is stored. Default one hour
   * @param maxHeld sessions stored only for their stream. Default 10,000
   * @param now milliseconds; for tests
   */
  constructor(
    private readonly ttl = SUBSCRIPTION_TTL,
    private readonly maxHeld = 10_000,
    private readonly now: () => number = () => performance.now(),
  ) {
    super();
  }

  add(session: string, uri: string, limits: SubscriptionStoreLimits): Promise<SubscriptionOutcome> {
    return Promise.resolve(this.addNow(session, uri, limits));
  }

  remove(session: string, uri: string): Promise<void> {
    const entry = this.sessions.get(session);
    entry?.uris.delete(uri);
    if (entry && entry.uris.size === 0 && entry.holder === undefined) this.sessions.delete(session);
    return Promise.resolve();
  }

  of(session: string): Promise<readonly string[]> {
    return Promise.resolve([...(this.entry(session)?.uris ?? [])]);
  }

  hold(session: string, replica: string): Promise<string | undefined> {
    const entry = this.touchEntry(session);
    const before = entry.holder;
    entry.holder = replica;
    this.shrink();
    return Promise.resolve(before);
  }

  holder(session: string): Promise<string | undefined> {
    return Promise.resolve(this.entry(session)?.holder);
  }

  touch(sessions: readonly string[]): Promise<void> {
    for (const session of sessions) if (this.entry(session)) this.touchEntry(session);
    return Promise.resolve();
  }

  forget(session: string): Promise<void> {
    this.sessions.delete(session);
    return Promise.resolve();
  }

  private addNow(
    session: string,
    uri: string,
    { maxPerSession, maxSessions, share }: SubscriptionStoreLimits,
  ): SubscriptionOutcome {
    const entry = this.entry(session);
    if (entry?.uris.has(uri)) {
      this.touchEntry(session);
      return 'present';
    }
    if (!entry?.uris.size && this.countSubscribed(maxSessions) >= maxSessions) return 'full';
    if (
      !entry?.uris.size &&
      share &&
      this.countSubscribed(share.maxSessions, share.owner) >= share.maxSessions
    )
      return 'owner-full';
    if (entry && entry.uris.size >= maxPerSession) return 'session-full';
    const kept = this.touchEntry(session);
    kept.owner = share?.owner;
    kept.uris.add(uri);
    return 'added';
  }

  /** Number of sessions with entries; removes expired ones only when the limit is reached. */
  private countSubscribed(enough: number, owner?: string): number {
    const isCounted = (entry: SessionEntry) =>
      entry.uris.size > 0 && (owner === undefined || entry.owner === owner);
    const count = () => [...this.sessions.values()].filter(isCounted).length;
    if (this.sessions.size < enough || count() < enough) return 0;
    for (const session of this.sessions.keys()) this.entry(session);
    return count();
  }

  private entry(session: string): SessionEntry | undefined {
    const entry = this.sessions.get(session);
    if (entry && entry.until <= this.now()) {
      this.sessions.delete(session);
      return undefined;
    }
    return entry;
  }

  /** Re-inserting keeps the map in order of last use. */
  private touchEntry(session: string): SessionEntry {
    const entry = this.entry(session) ?? {
      uris: new Set<string>(),
      holder: undefined,
      owner: undefined,
      until: 0,
    };
    entry.until = this.now() + this.ttl;
    this.sessions.delete(session);
    this.sessions.set(session, entry);
    return entry;
  }

  /** Streams without subscriptions are removed in order of last use; entries never are. */
  private shrink(): void {
    if (this.sessions.size <= this.maxHeld) return;
    for (const [session, { uris }] of this.sessions) {
      if (uris.size > 0) continue;
      this.sessions.delete(session);
      return;
    }
  }
}
