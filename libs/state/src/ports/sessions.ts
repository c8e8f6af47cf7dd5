import type { Observable } from 'rxjs';
import type { Agent } from '#core';

/** What a client opened with `initialize`. */
export interface Session {
  /** The principal that opened it: for anybody else the id is a mere label. */
  readonly owner: string;
  /** The negotiated protocol version. */
  readonly version: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** The least urgent log lines that its client wants; it changes when the session is opened anew. */
  readonly logLevel?: string;
  /** Ended by its client; kept so that later use can be told apart from an id never seen. */
  readonly terminated: boolean;
}

export interface SessionDraft extends Omit<Session, 'terminated'> {
  /** The id the client would like to keep. */
  readonly proposedId?: string;
}

/** Milliseconds without use after which a session, or the memory of its end, is forgotten. */
export const SESSION_TTL = 24 * 60 * 60 * 1000;

/** Sessions of the revisions that have them. Implementations over shared state serve all replicas. */
export abstract class SessionStore {
  /**
   * Opens a session, in one step that two callers cannot interleave.
   * @returns its id: the proposed one when nobody has it or this owner's live session has it, else a fresh one
   * @throws SharedStateUnavailable
   */
  abstract create(draft: SessionDraft): Promise<string>;
  /** A returned session counts as used. @throws SharedStateUnavailable */
  abstract find(id: string): Promise<Session | undefined>;
  /** Sessions and tombstones kept; null where they are not kept in this process. */
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
  /** Whose credentials opened it: messages on the stream must be permitted to them. */
  readonly agent: Agent;
}

/**
 * The listening streams of sessions, on whichever replica they are open. A session has one at most: a newer one ends the
 * older. Who sends to a session has checked that its owner may know what is sent.
 */
export abstract class SessionStreams {
  /**
   * Sends a notification to a session. Never rejects.
   * @returns whether a stream took it; without one it is dropped
   * @throws TypeError for an empty method
   */
  abstract notify(session: string, notice: SessionNotice): Promise<boolean>;

  /** Hot; emits on the replica that holds the stream, once it can carry notices. A newer stream of the session emits again. */
  abstract readonly opened: Observable<OpenedStream>;

  /**
   * Ids of sessions that were left without a listening stream: theirs closed and no newer one had replaced it, or the
   * session was ended. Hot; emits on every replica, whichever had the stream, and may repeat an id.
   */
  abstract readonly left: Observable<string>;

  /**
   * Ids of sessions whose stream this replica ended by itself, and whose client is expected to come back, here or elsewhere:
   * the session goes on. Hot; emits on this replica alone.
   */
  abstract readonly returning: Observable<string>;
}
