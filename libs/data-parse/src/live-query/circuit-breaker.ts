export type CircuitState = 'closed' | 'open' | 'half_open';

/** Stops trying a server that keeps failing, and lets one try through after a while. */
export class CircuitBreaker {
  private failures = 0;
  private lastFailure = -Infinity;
  private current: CircuitState = 'closed';

  /**
   * @param threshold failures in a row that open it
   * @param resetAfter milliseconds from the last failure until one try is let through
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

  /** Milliseconds until a try is let through; 0: now. */
  get waiting(): number {
    return this.current === 'open' ? Math.max(this.lastFailure + this.resetAfter - this.now(), 0) : 0;
  }

  /** Whether a try may be made now. Half open, only one. */
  admits(): boolean {
    if (this.current === 'closed') return true;
    if (this.current === 'half_open' || this.waiting > 0) return false;
    this.current = 'half_open';
    return true;
  }

  succeeded(): void {
    this.failures = 0;
    this.current = 'closed';
  }

  failed(): void {
    this.failures += 1;
    this.lastFailure = this.now();
    if (this.current === 'half_open' || this.failures >= this.threshold) this.current = 'open';
  }
}
