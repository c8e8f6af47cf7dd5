import type { Observable } from 'rxjs';

/** A JSON-RPC notification without its envelope. */
export interface SessionNotice {
  /** Not empty. */
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
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

  /**
   * Ids of sessions that were left without a listening stream: theirs closed and no newer one had replaced it, or the
   * session was ended. Hot; emits on every replica, whichever had the stream, and may repeat an id.
   */
  abstract readonly left: Observable<string>;
}
