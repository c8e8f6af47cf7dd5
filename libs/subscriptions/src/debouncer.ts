/**
 * Fires once per interval and thing: the first touch arms it, later ones are absorbed until it fires. All things share one
 * timer, because they share one interval.
 */
export class Debouncer<T> {
  /** When each armed thing fires; first armed, first due. */
  private readonly armed = new Map<T, number>();
  private timer: NodeJS.Timeout | null = null;

  /** @param interval milliseconds; 0 or less fires on every touch */
  constructor(
    private readonly interval: number,
    private readonly fire: (thing: T) => void,
  ) {}

  touch(thing: T): void {
    if (this.interval <= 0) {
      this.fire(thing);
      return;
    }
    if (this.armed.has(thing)) return;
    this.armed.set(thing, performance.now() + this.interval);
    this.timer ??= this.wait(this.interval);
  }

  /** What was cancelled does not fire. */
  cancel(thing: T): void {
    if (!this.armed.delete(thing) || this.armed.size > 0 || !this.timer) return;
    clearTimeout(this.timer);
    this.timer = null;
  }

  private wait(milliseconds: number): NodeJS.Timeout {
    return setTimeout(() => this.tick(), Math.max(milliseconds, 1)).unref();
  }

  private tick(): void {
    this.timer = null;
    const now = performance.now();
    const due: T[] = [];
    for (const [thing, when] of this.armed) {
      // Timers may come a fraction early; nobody notices one that fires with them.
      if (when > now + 1) break;
      due.push(thing);
    }
    for (const thing of due) this.armed.delete(thing);
    for (const thing of due) this.fire(thing);
    const next = this.armed.values().next().value;
    if (next !== undefined) this.timer ??= this.wait(next - now);
  }
}
