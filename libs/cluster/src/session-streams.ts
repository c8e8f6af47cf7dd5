import type { Observable } from 'rxjs';
import type { Agent } from '#agent';

/** A JSON-RPC notification without its envelope. */
export interface SessionNotice {
  /** Not empty. */
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

/** A listening stream that this replica now holds. */
export interface OpenedStream {
  readonly session: string;
  /** Whose credentials opened it: what is told on the stream must be theirs to know. */
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
