export interface ReconnectDelayOptions {
  /** Seconds. */
  readonly initial: number;
  readonly longest: number;
  readonly multiplier: number;
  /** Share of the interval, either way. */
  readonly jitter: number;
}

const SHORTEST = 0.1;

/** Growing pauses between attempts, each a little off so that clients of one server do not come back in step. */
export class ReconnectDelay {
  private interval: number;

  /** @param random from 0 to 1; for tests */
  constructor(
    private readonly options: ReconnectDelayOptions,
    private readonly random: () => number = Math.random,
  ) {
    this.interval = options.initial;
  }

  /** Milliseconds until the next attempt; the one after it waits longer. */
  next(): number {
    const { jitter, multiplier, longest } = this.options;
    const offset = (this.random() * 2 - 1) * this.interval * jitter;
    const delay = Math.max(this.interval + offset, SHORTEST);
    this.interval = Math.min(this.interval * multiplier, longest);
    return delay * 1000;
  }

  reset(): void {
    this.interval = this.options.initial;
  }
}
