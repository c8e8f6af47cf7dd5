/** The share of one owner in a bounded store, so that one owner's entries never displace another owner's. */
export interface Share {
  /** Default: as many as the store holds. */
  readonly entries?: number;
  /** Bytes of all entries of the owner together. Default: the limit of the store. */
  readonly weight?: number;
}

const MIB = 1024 * 1024;

/** Sessions of a principal, tombstones of ended ones included; a new session removes the longest unused one. */
export const SESSION_SHARE: Share = Object.freeze({ entries: 1_000 });
/** Resumable streams of a principal; a new stream removes the one written to longest ago. */
export const STREAM_SHARE: Share = Object.freeze({ entries: 1_000, weight: 16 * MIB });
/** One-time values that requests of a principal store; a new value removes the oldest. */
export const VALUE_SHARE: Share = Object.freeze({ entries: 10_000, weight: 16 * MIB });
/** Claims of a principal; a further one is refused. */
export const CLAIM_SHARE: Share = Object.freeze({ entries: 10_000 });
/**
 * Tasks, and separately exports, of a principal: a further one is refused; a record that grows removes the oldest of its
 * owner.
 */
export const RECORD_SHARE: Share = Object.freeze({ entries: 5_000, weight: 32 * MIB });
/** Decided approvals of a requester; a further one removes the one decided longest ago. */
export const DECIDED_SHARE: Share = Object.freeze({ entries: 1_000 });
/** Console sessions that a principal ended before their expiry; a further one is refused. */
export const ENDED_SESSION_SHARE: Share = Object.freeze({ entries: 1_000 });

/**
 * Milliseconds since 1970 on the process clock: set at the start, and never adjusted afterwards. For times that decide
 * something; displayed times may use the system clock.
 */
export const steadyClock = (): number => performance.timeOrigin + performance.now();

/**
 * Maximum difference of the clocks of replicas in milliseconds: an expiry that one replica sets is tolerated by others for
 * this long.
 */
export const CLOCK_DIFFERENCE = 300_000;

/**
 * The shared state of the replicas cannot be reached. An operation that depends on it is refused and never continues without
 * it.
 */
export class SharedStateUnavailable extends Error {
  constructor(cause?: unknown) {
    super('the shared state cannot be reached', { cause });
    this.name = 'SharedStateUnavailable';
  }
}
