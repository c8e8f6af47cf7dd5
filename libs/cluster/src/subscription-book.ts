/** Milliseconds that a session nobody touches is remembered. */
export const SUBSCRIPTION_TTL = 3_600_000;

export interface BookLimits {
  readonly maxPerSession: number;
  readonly maxSessions: number;
  /** The principal whose session it is, and how many of them it may have. Default: nobody is counted alone. */
  readonly share?: { readonly owner: string; readonly maxSessions: number };
}

/** `full`: no room for another session; `owner-full`: none for another of this owner; `session-full`: none in this session. */
export type BookEntry = 'added' | 'present' | 'full' | 'owner-full' | 'session-full';

/**
 * Which resources the clients of sessions have subscribed to, and which replica holds a session's stream, so that another
 * replica can carry on. Nothing in it gives anybody a right. An entry that nobody touches is forgotten after a while.
 */
export abstract class SubscriptionBook {
  /** In one step that two callers cannot interleave. A session that has entries may add more however many sessions there are. @throws SharedStateUnavailable */
  abstract add(session: string, uri: string, limits: BookLimits): Promise<BookEntry>;
  /** A session without entries left is no session. @throws SharedStateUnavailable */
  abstract remove(session: string, uri: string): Promise<void>;
  /** In no particular order. @throws SharedStateUnavailable */
  abstract of(session: string): Promise<readonly string[]>;
  /** Says that `replica` holds the session's stream from now on. @returns who held it before. @throws SharedStateUnavailable */
  abstract hold(session: string, replica: string): Promise<string | undefined>;
  /** Who holds the session's stream. @throws SharedStateUnavailable */
  abstract holder(session: string): Promise<string | undefined>;
  /** Keeps the entries of sessions that are in use. @throws SharedStateUnavailable */
  abstract touch(sessions: readonly string[]): Promise<void>;
  /** Entries and holder. @throws SharedStateUnavailable */
  abstract forget(session: string): Promise<void>;
}
