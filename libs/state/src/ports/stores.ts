import type { BusMessage } from './message-bus.js';

/** Values that are used up by whoever comes first, on whichever replica. */
export abstract class OneTimeStore {
  /**
   * Keeps a value for `ttl` milliseconds, in place of an earlier one.
   * @param owner the principal in whose share it counts: beyond it, its oldest value is forgotten. Default: nobody's
   * @throws SharedStateUnavailable
   */
  abstract keep(key: string, value: BusMessage, ttl: number, owner?: string): Promise<void>;
  /** Hands the value out and forgets it in one step: of two callers, one gets it. @throws SharedStateUnavailable */
  abstract take(key: string): Promise<BusMessage | undefined>;
  /**
   * True for the first caller within `ttl` milliseconds, false for every later one.
   * @param owner the principal in whose share it counts. Default: nobody's
   * @throws SharedStateUnavailable, also when its owner has no room for another: nothing is ever used twice
   */
  abstract claim(key: string, ttl: number, owner?: string): Promise<boolean>;
}

/** A record as one reader saw it. */
export interface VersionedRecord {
  readonly value: BusMessage;
  /** Rises with every change. */
  readonly revision: number;
}

/** A record of a listing. */
export interface ListedRecord extends VersionedRecord {
  readonly id: string;
}

/** Records that a listing goes back to. */
export const MAX_LISTED_RECORDS = 1_000;

/** Records that several replicas change: whoever saw an older state changes nothing. */
export abstract class VersionedStore {
  /**
   * Keeps a new record for `ttl` milliseconds.
   * @param owner the principal in whose share it counts: beyond it there is no room for another, and one that grows makes the
   * owner's oldest give way. Default: nobody's; such a record never gives way
   * @returns false when the id is taken. @throws SharedStateUnavailable, also without room
   */
  abstract create(id: string, value: BusMessage, ttl: number, owner?: string): Promise<boolean>;
  /** @throws SharedStateUnavailable */
  abstract find(id: string): Promise<VersionedRecord | undefined>;
  /**
   * Replaces the record if it still has that revision; it then lives `ttl` milliseconds from now.
   * @returns false when it changed meanwhile or is gone. @throws SharedStateUnavailable
   */
  abstract replace(id: string, revision: number, value: BusMessage, ttl: number): Promise<boolean>;
  /** @throws SharedStateUnavailable */
  abstract remove(id: string): Promise<void>;
  /**
   * For operators: what was created or changed last, that first.
   * @param limit at most `MAX_LISTED_RECORDS`. @throws SharedStateUnavailable
   */
  abstract latest(limit: number): Promise<readonly ListedRecord[]>;
}
