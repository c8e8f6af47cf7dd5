/** The time of a call, and its timeout. It pauses while the call waits for a person or another program. */
export class CallClock {
  private remaining = 0;
  private since = 0;
  private waiting = 0;
  private waitingSince = 0;
  private waitedBefore = 0;
  private timer: NodeJS.Timeout | undefined = undefined;
  private expire: (() => void) | undefined = undefined;

  /** @param milliseconds until `expired` is called, without the waiting time */
  start(milliseconds: number, expired: () => void): void {
    this.remaining = milliseconds;
    this.expire = expired;
    if (this.waiting === 0) this.run();
  }

  /** Milliseconds for which the call has waited for a person or another program. */
  get waited(): number {
    return this.waitedBefore + (this.waiting > 0 ? performance.now() - this.waitingSince : 0);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.expire = undefined;
  }

  /** Waits for work that is not part of the run. */
  async suspended<T>(work: () => Promise<T>): Promise<T> {
    if (this.waiting++ === 0) {
      this.waitingSince = performance.now();
      this.halt();
    }
    try {
      return await work();
    } finally {
      if (--this.waiting === 0) {
        this.waitedBefore += performance.now() - this.waitingSince;
        this.run();
      }
    }
  }

  private run(): void {
    const { expire } = this;
    if (!expire) return;
    this.since = performance.now();
    this.timer = setTimeout(expire, this.remaining);
  }

  private halt(): void {
    if (!this.expire) return;
    clearTimeout(this.timer);
    this.remaining = Math.max(0, this.remaining - (performance.now() - this.since));
  }
}
