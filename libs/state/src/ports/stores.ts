import type { Observable } from 'rxjs';

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

/** A message between replicas: plain JSON. */
export type BusMessage = Readonly<Record<string, unknown>>;

/**
 * Publishes to every replica at once. Nothing is stored: a replica that is not subscribed at that moment misses the message.
 */
export abstract class MessageBus {
  /**
   * Reaches every listener on every replica, this one included.
   * @throws SharedStateUnavailable when the replicas cannot be reached
   */
  abstract publish(topic: string, message: BusMessage): Promise<void>;
  /** Hot; every subscription receives all messages of the topic from then on. It survives an outage of the shared state. */
  abstract messages(topic: string): Observable<BusMessage>;
}
