/** What a client opened with `initialize`. */
export interface Session {
  /** The principal that opened it: for anybody else the id is a mere label. */
  readonly owner: string;
  /** The negotiated protocol version. */
  readonly version: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** The least urgent log lines that its client wants to hear; it changes when the session is opened anew. */
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
