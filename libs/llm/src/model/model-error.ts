/**
 * `unreachable`: nobody answered. `timeout`: nothing came in time. `http`: an error status. `overloaded`: told inside a stream.
 * `redirected`: sent elsewhere, and not followed. `malformed`: an answer that cannot be one. `too-large`: more than is read.
 */
export type ModelFault =
  'unreachable' | 'timeout' | 'http' | 'overloaded' | 'redirected' | 'malformed' | 'too-large' | 'no-room';

interface FaultDetails {
  readonly status?: number | undefined;
  /** Seconds that the server asks to wait. */
  readonly retryAfter?: number | undefined;
  /** The same request may do better in a moment. */
  readonly transient?: boolean;
}

/** A model could not be asked, or did not answer. The message is one line and holds no credential. */
export class LanguageModelError extends Error {
  /** Stays the same where two copies of the package meet. */
  override readonly name = 'LanguageModelError';
  /** HTTP status that the server answered with, where it did. */
  readonly status: number | undefined;
  /** Seconds that the server asks to wait. */
  readonly retryAfter: number | undefined;
  /** The same request may do better in a moment. */
  readonly transient: boolean;

  constructor(
    /** What went wrong. */
    readonly fault: ModelFault,
    message: string,
    { status, retryAfter, transient = false }: FaultDetails = {},
  ) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
    this.transient = transient;
  }

  /** The same error in other words. */
  reworded(message: string): LanguageModelError {
    return message === this.message ? this : new LanguageModelError(this.fault, message, this);
  }
}

/** Settings with which no model can be asked; the message names the setting and the choices. */
export class ModelSettingsError extends Error {
  /** Stays the same where two copies of the package meet. */
  override readonly name = 'ModelSettingsError';
}
