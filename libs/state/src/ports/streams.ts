/** One frame of a stream that its client may pick up again. */
export interface LoggedFrame {
  /** Rises within the stream. */
  readonly entry: string;
  readonly frame: string;
}

/** How much of each stream is remembered, and how long. The oldest frames give way. */
export interface StreamLogLimits {
  /** Default 1000. */
  readonly maxFrames?: number;
  /** Bytes of all frames of a stream; the newest frame is kept however large. Default 8,388,608. */
  readonly maxSize?: number;
  /** Milliseconds after the last frame. Default 300,000. */
  readonly ttl?: number;
}

export const STREAM_LOG_LIMITS: Required<StreamLogLimits> = {
  maxFrames: 1000,
  maxSize: 8_388_608,
  ttl: 300_000,
};

/** The frames of resumable streams, bounded in number and size, and kept for a limited time. */
export abstract class StreamLog {
  /**
   * @param owner the principal in whose share the stream counts: beyond it, its streams written to longest ago are forgotten.
   * Default: nobody's
   * @returns the entry that names the frame within its stream. @throws SharedStateUnavailable
   */
  abstract append(stream: string, frame: string, owner?: string): Promise<string>;
  /**
   * What followed `entry`, oldest first.
   * @returns `undefined` when the stream or the entry is no longer known: a gap must not look like a complete replay
   * @throws SharedStateUnavailable
   */
  abstract after(stream: string, entry: string): Promise<readonly LoggedFrame[] | undefined>;
  /** @throws SharedStateUnavailable */
  abstract forget(stream: string): Promise<void>;
}

/** Milliseconds that an unused session is remembered. */
export const SUBSCRIPTION_TTL = 3_600_000;

export interface SubscriptionStoreLimits {
  readonly maxPerSession: number;
  readonly maxSessions: number;
  /** The principal whose session it is, and how many of them it may have. Default: nobody is counted alone. */
  readonly share?: { readonly owner: string; readonly maxSessions: number };
}

/** `full`: no room for another session; `owner-full`: none for another of this owner; `session-full`: none in this session. */
export type SubscriptionOutcome = 'added' | 'present' | 'full' | 'owner-full' | 'session-full';

/**
 * Which resources the clients of sessions have subscribed to, and which replica holds a session's stream, so that another
 * replica can carry on. Nothing in it gives anybody a right. An entry that nobody touches is forgotten after a while.
 */
export abstract class SubscriptionBook {
  /** In one step that two callers cannot interleave. A session that has entries may add more however many sessions there are. @throws SharedStateUnavailable */
  abstract add(session: string, uri: string, limits: SubscriptionStoreLimits): Promise<SubscriptionOutcome>;
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
