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
