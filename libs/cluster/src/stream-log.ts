/** One frame of a stream that its client may pick up again. */
export interface LoggedFrame {
  /** Rises within the stream. */
  readonly entry: string;
  readonly frame: string;
}

/** The frames of resumable streams, bounded in number and kept for a limited time. */
export abstract class StreamLog {
  /** @returns the entry that names the frame within its stream. @throws SharedStateUnavailable */
  abstract append(stream: string, frame: string): Promise<string>;
  /**
   * What followed `entry`, oldest first.
   * @returns `undefined` when the stream or the entry is no longer known: a gap must not look like a complete replay
   */
  abstract after(stream: string, entry: string): Promise<readonly LoggedFrame[] | undefined>;
  abstract forget(stream: string): Promise<void>;
}
