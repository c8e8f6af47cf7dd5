import type { Observable } from 'rxjs';
import type { Agent } from '#core';

/** A session that a client opened with `initialize`. */
export interface Session {
  /** The principal that opened it: for any other principal the id grants nothing. */
  readonly owner: string;
  /** The negotiated protocol version. */
  readonly version: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** The minimum log level that its client requested; it changes when the session is opened again. */
  readonly logLevel?: string;
  /** Ended by its client; stored so that later use can be distinguished from an unknown id. */
  readonly terminated: boolean;
}

export interface SessionDraft extends Omit<Session, 'terminated'> {
  readonly proposedId?: string;
}

/** Milliseconds without use after which a session or a tombstone is removed. */
export const SESSION_TTL = 24 * 60 * 60 * 1000;

/** Sessions of the protocol revisions that have them. Implementations over shared state serve all replicas. */
export abstract class SessionStore {
  /**
   * Opens a session in one atomic step.
   * @returns its id: the proposed one when it is unused or belongs to this owner's live session, else a new one
   * @throws SharedStateUnavailable
   */
  abstract create(draft: SessionDraft): Promise<string>;
  /** A returned session counts as used. @throws SharedStateUnavailable */
  abstract find(id: string): Promise<Session | undefined>;
  /** Number of sessions that can be used; with shared state about that of all replicas. @throws SharedStateUnavailable */
  abstract count(): Promise<number>;
  /** Ends a session and leaves a tombstone; an id that is unknown stays unknown. @throws SharedStateUnavailable */
  abstract terminate(id: string): Promise<void>;
}

/** A JSON-RPC notification without its envelope. */
export interface SessionNotice {
  /** Not empty. */
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

/** A listening stream that this replica now holds. */
export interface OpenedStream {
  readonly session: string;
  /** The key of the agent that opened it: messages on the stream must be permitted to that agent. */
  readonly agent: Agent;
}

/**
 * The listening streams of sessions, on whichever replica they are open. A session has at most one: a newer stream ends the
 * older. The sender must have checked that the owner of the session may receive the message.
 */
export abstract class SessionStreams {
  /**
   * Sends a notification to a session. Never rejects.
   * @returns whether a stream took it; without one it is dropped
   * @throws TypeError for an empty method
   */
  abstract notify(session: string, notice: SessionNotice): Promise<boolean>;

  /**
   * Hot; emits on the replica that holds the stream, once it can carry notifications. A newer stream of the session emits
   * again.
   */
  abstract readonly opened: Observable<OpenedStream>;

  /**
   * Ids of sessions that lost their listening stream: it closed and no newer one had replaced it, or the session was ended.
   * Hot; emits on every replica, whichever had the stream, and may repeat an id.
   */
  abstract readonly left: Observable<string>;

  /**
   * Ids of sessions whose stream this replica ended and whose client is expected to reconnect, here or elsewhere: the session
   * continues. Hot; emits on this replica only.
   */
  abstract readonly returning: Observable<string>;
}

/** One frame of a stream that its client may resume. */
export interface LoggedFrame {
  /** Increases within the stream. */
  readonly entry: string;
  readonly frame: string;
}

/** How much of each stream is stored, and for how long. The oldest frames are removed first. */
export interface StreamLogLimits {
  /** Default 1000. */
  readonly maxFrames?: number;
  /** Bytes of all frames of a stream; the newest frame is kept whatever its size. Default 8,388,608. */
  readonly maxSize?: number;
  /** Milliseconds after the last frame. Default 300,000. */
  readonly ttl?: number;
}

export const STREAM_LOG_LIMITS: Required<StreamLogLimits> = {
  maxFrames: 1000,
  maxSize: 8_388_608,
  ttl: 300_000,
};

/** The frames of resumable streams, bounded in number and size, and stored for a limited time. */
export abstract class StreamLog {
  /**
   * @param owner the principal in whose share the stream counts: beyond it, its streams written to longest ago are removed.
   * Default: none
   * @returns the entry that identifies the frame within its stream. @throws SharedStateUnavailable
   */
  abstract append(stream: string, frame: string, owner?: string): Promise<string>;
  /**
   * The frames after `entry`, oldest first.
   * @returns `undefined` when the stream or the entry is no longer stored: a gap must not look like a complete replay
   * @throws SharedStateUnavailable
   */
  abstract after(stream: string, entry: string): Promise<readonly LoggedFrame[] | undefined>;
  /** @throws SharedStateUnavailable */
  abstract forget(stream: string): Promise<void>;
}

/** Milliseconds for which an unused session is stored. */
export const SUBSCRIPTION_TTL = 3_600_000;

export interface SubscriptionStoreLimits {
  readonly maxPerSession: number;
  readonly maxSessions: number;
  /** The principal of the session, and how many sessions it may have. Default: no limit per owner. */
  readonly share?: { readonly owner: string; readonly maxSessions: number };
}

/**
 * `full`: no space for another session; `owner-full`: none for another of this owner; `session-full`: none in this session.
 */
export type SubscriptionOutcome = 'added' | 'present' | 'full' | 'owner-full' | 'session-full';

/**
 * The resources to which the clients of sessions have subscribed, and the replica that holds a session's stream, so that
 * another replica can continue. The entries grant no rights. An unused entry is removed after a while.
 */
export abstract class SubscriptionStore {
  /**
   * One atomic step. A session that has entries may add more, whatever the number of sessions. @throws SharedStateUnavailable
   */
  abstract add(session: string, uri: string, limits: SubscriptionStoreLimits): Promise<SubscriptionOutcome>;
  /** A session without entries is removed. @throws SharedStateUnavailable */
  abstract remove(session: string, uri: string): Promise<void>;
  /** In no particular order. @throws SharedStateUnavailable */
  abstract of(session: string): Promise<readonly string[]>;
  /** Sets `replica` as the holder of the session's stream. @returns the previous holder. @throws SharedStateUnavailable */
  abstract hold(session: string, replica: string): Promise<string | undefined>;
  /** The replica that holds the session's stream. @throws SharedStateUnavailable */
  abstract holder(session: string): Promise<string | undefined>;
  /** Extends the life of the entries of sessions that are in use. @throws SharedStateUnavailable */
  abstract touch(sessions: readonly string[]): Promise<void>;
  /** Removes entries and holder. @throws SharedStateUnavailable */
  abstract forget(session: string): Promise<void>;
}
