import type { BusMessage } from './message-bus.js';

/** Values that only the first caller can take, on whichever replica. */
export abstract class OneTimeStore {
  /**
   * Stores a value for `ttl` milliseconds, in place of an earlier one.
   * @param owner the principal in whose share it counts: beyond it, its oldest value is removed. Default: none
   * @throws SharedStateUnavailable
   */
  abstract keep(key: string, value: BusMessage, ttl: number, owner?: string): Promise<void>;
  /** Returns the value and removes it in one step: of two callers, one receives it. @throws SharedStateUnavailable */
  abstract take(key: string): Promise<BusMessage | undefined>;
  /**
   * True for the first caller within `ttl` milliseconds, false for every later one.
   * @param owner the principal in whose share it counts. Default: none
   * @throws SharedStateUnavailable, also when its owner has no space for another: nothing is ever used twice
   */
  abstract claim(key: string, ttl: number, owner?: string): Promise<boolean>;
}

/** A record as one reader received it. */
export interface VersionedRecord {
  readonly value: BusMessage;
  /** Increases with every change. */
  readonly revision: number;
}

/** A record of a listing. */
export interface ListedRecord extends VersionedRecord {
  readonly id: string;
}

/** Maximum number of records in a listing. */
export const MAX_LISTED_RECORDS = 1_000;

/** Records that several replicas change: a change based on an older revision is not applied. */
export abstract class VersionedStore {
  /**
   * Stores a new record for `ttl` milliseconds.
   * @param owner the principal in whose share it counts: beyond it a further record is refused, and a record that grows
   * removes the owner's oldest. Default: none; such a record is never removed for another
   * @returns false when the id is taken. @throws SharedStateUnavailable, also without space
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
   * For operators: the records that were created or changed last, newest first.
   * @param limit at most `MAX_LISTED_RECORDS`. @throws SharedStateUnavailable
   */
  abstract latest(limit: number): Promise<readonly ListedRecord[]>;
}
