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
