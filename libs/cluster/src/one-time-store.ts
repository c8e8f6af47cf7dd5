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
