type CircuitState = 'closed' | 'open' | 'half_open';

/** A circuit breaker: it stops attempts at a server that keeps failing, and permits one attempt after a pause. */
export class CircuitBreaker {
  private failures = 0;
  private lastFailure = -Infinity;
  private current: CircuitState = 'closed';

  /**
   * @param threshold consecutive failures that open it
   * @param resetAfter milliseconds from the last failure until one attempt is permitted
   * @param now milliseconds; for tests
   */
  constructor(
    private readonly threshold: number,
    private readonly resetAfter: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  get state(): CircuitState {
    return this.current;
  }

  /** Milliseconds until an attempt is permitted; 0: now. */
  get waiting(): number {
    return this.current === 'open' ? Math.max(this.lastFailure + this.resetAfter - this.now(), 0) : 0;
  }

  /** Whether an attempt may be made now. When half open, only one. */
  admits(): boolean {
    if (this.current === 'closed') return true;
    if (this.current === 'half_open' || this.waiting > 0) return false;
    this.current = 'half_open';
    return true;
  }

  noteSuccess(): void {
    this.failures = 0;
    this.current = 'closed';
  }

  noteFailure(): void {
    this.failures += 1;
    this.lastFailure = this.now();
    if (this.current === 'half_open' || this.failures >= this.threshold) this.current = 'open';
  }
}

const GROWTH_FACTOR = 1.5;
/** Share of the interval, in either direction. */
const JITTER_SHARE = 0.2;
/** Seconds. */
const MIN_DELAY = 0.1;

/** Growing pauses between attempts, with jitter so that clients of one server do not reconnect at the same time. */
export class ReconnectDelay {
  private interval: number;

  /**
   * @param initial seconds
   * @param longest seconds
   * @param random from 0 to 1; for tests
   */
  constructor(
    private readonly initial: number,
    private readonly longest: number,
    private readonly random: () => number = Math.random,
  ) {
    this.interval = initial;
  }

  /** Milliseconds until the next attempt. Every call increases the interval, up to its maximum. */
  next(): number {
    const offset = (this.random() * 2 - 1) * this.interval * JITTER_SHARE;
    const delay = Math.max(this.interval + offset, MIN_DELAY);
    this.interval = Math.min(this.interval * GROWTH_FACTOR, this.longest);
    return delay * 1000;
  }

  reset(): void {
    this.interval = this.initial;
  }
}
