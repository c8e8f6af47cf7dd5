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
