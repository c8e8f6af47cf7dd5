/** What wants to be called once per interval. */
export interface Beating {
  /** @param now milliseconds of the monotonic clock */
  beat(now: number): void;
}

/** Beats that are due within so many milliseconds of each other share a timer. */
const COALESCE = 20;

/**
 * Calls every stream once per interval with one timer for all of them. All intervals are alike, so the order of
 * insertion is the order in which they are due.
 */
export class KeepAlives {
  private readonly due = new Map<Beating, number>();
  private timer: NodeJS.Timeout | null = null;

  /** @param interval milliseconds; 0 or less: nobody is ever called */
  constructor(private readonly interval: number) {}

  /** First called one full interval from now. */
  add(beating: Beating): void {
    if (this.interval <= 0) return;
    this.due.set(beating, performance.now() + this.interval);
    if (this.timer === null) this.arm(this.interval);
  }

  remove(beating: Beating): void {
    this.due.delete(beating);
  }

  private arm(wait: number): void {
    this.timer = setTimeout(() => this.beat(), Math.max(wait, COALESCE));
    this.timer.unref();
  }

  private beat(): void {
    this.timer = null;
    const now = performance.now();
    for (const [beating, due] of this.due) {
      if (due > now) {
        this.arm(due - now);
        return;
      }
      // Behind all others: it is due last.
      this.due.delete(beating);
      this.due.set(beating, now + this.interval);
      beating.beat(now);
    }
  }
}
