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
  /** The id that the client proposes. */
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
  /** Number of sessions and tombstones; null where they are not stored in this process. */
  get held(): number | null {
    return null;
  }
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
