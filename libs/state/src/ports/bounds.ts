/** What one owner may have of a bounded store, so that nobody's entries give way to somebody else's. */
export interface Share {
  /** Default: as many as the store holds. */
  readonly entries?: number;
  /** Of all entries of the owner together, in what the store weighs them in: bytes. Default: as much as the store holds. */
  readonly weight?: number;
}

const MIB = 1024 * 1024;

/** Sessions of a principal, ended ones that are remembered included; the longest unused one is forgotten for a new one. */
export const SESSION_SHARE: Share = Object.freeze({ entries: 1_000 });
/** Resumable streams of a principal; the one written to longest ago is forgotten for a new one. */
export const STREAM_SHARE: Share = Object.freeze({ entries: 1_000, weight: 16 * MIB });
/** Values that requests of a principal leave for others; the oldest is forgotten for a new one. */
export const VALUE_SHARE: Share = Object.freeze({ entries: 10_000, weight: 16 * MIB });
/** What a principal used up; one more is refused. */
export const CLAIM_SHARE: Share = Object.freeze({ entries: 10_000 });
/** Tasks, and separately exports, of a principal: one more is refused; a record that grows makes the oldest of its owner give way. */
export const RECORD_SHARE: Share = Object.freeze({ entries: 5_000, weight: 32 * MIB });
/** Decided approvals of a requester; the one decided longest ago is forgotten for a new one. */
export const DECIDED_SHARE: Share = Object.freeze({ entries: 1_000 });
/** Console sessions that a principal ended before their time; ending one more is refused. */
export const ENDED_SESSION_SHARE: Share = Object.freeze({ entries: 1_000 });

/**
 * Milliseconds since 1970 as this process counts them: right when it started, and never set back or forward afterwards.
 * For times that decide something; what people read may come from the machine's clock.
 */
export const steadyClock = (): number => performance.timeOrigin + performance.now();

/** Milliseconds by which clocks of replicas may differ: what one of them seals or writes down holds on all others so long. */
export const CLOCK_DIFFERENCE = 300_000;

/** The state that replicas share cannot be reached. Whoever depends on it refuses: it never goes on without. */
export class SharedStateUnavailable extends Error {
  constructor(cause?: unknown) {
    super('the shared state cannot be reached', { cause });
    this.name = 'SharedStateUnavailable';
  }
}
