import {
  DEFAULT_RATE_LIMIT,
  type RateLimit,
  RateLimiters,
  type RateUsage,
  type RateVerdict,
  SlidingRateLimiter,
} from './rate-limiter.js';

/** The times of the attempts that still count, oldest first; forgetting is amortised O(1) however large the limit. */
class SlidingLog {
  private stamps: number[] = [];
  private head = 0;

  get size(): number {
    return this.stamps.length - this.head;
  }

  get oldest(): number | undefined {
    return this.stamps[this.head];
  }

  forgetUntil(time: number): void {
    while (this.head < this.stamps.length && (this.stamps[this.head] as number) <= time) this.head += 1;
    if (this.head > 1024 && this.head * 2 > this.stamps.length) {
      this.stamps = this.stamps.slice(this.head);
      this.head = 0;
    }
  }

  record(time: number): void {
    this.stamps.push(time);
  }
}

/** Counts in this process's memory, for this process alone. */
export class ProcessRateLimiter extends SlidingRateLimiter {
  private readonly logs = new Map<string, SlidingLog>();

  constructor(
    rate: RateLimit = DEFAULT_RATE_LIMIT,
    private readonly now: () => number = () => performance.now() / 1000,
    /** Principals remembered; the longest idle is forgotten first. */
    private readonly maxPrincipals = 10_000,
  ) {
    super(rate);
  }

  check(key: string): Promise<RateVerdict | null> {
    const at = this.now();
    const { limit, window } = this.rate;
    const log = this.logOf(key);
    log.forgetUntil(at - window);
    if (log.size < limit || log.oldest === undefined) {
      log.record(at);
      return Promise.resolve(null);
    }
    return Promise.resolve(this.refusal(log.oldest + window - at));
  }

  usage(key: string): Promise<RateUsage> {
    const at = this.now();
    const { limit, window } = this.rate;
    const log = this.logs.get(key);
    log?.forgetUntil(at - window);
    const used = log?.size ?? 0;
    const oldest = log?.oldest;
    const free = used < limit || oldest === undefined;
    return Promise.resolve(this.usageOf(used, free ? null : oldest + window - at));
  }

  reset(key: string): Promise<void> {
    this.logs.delete(key);
    return Promise.resolve();
  }

  /** Re-inserting keeps the map in order of last use, so the first key is the longest idle. */
  private logOf(key: string): SlidingLog {
    const log = this.logs.get(key) ?? new SlidingLog();
    this.logs.delete(key);
    this.logs.set(key, log);
    if (this.logs.size > this.maxPrincipals) {
      const idle = this.logs.keys().next().value;
      if (idle !== undefined) this.logs.delete(idle);
    }
    return log;
  }
}

/** Limiters of one process. Names of sub-agents are the application's: the longest unused limiter is forgotten first. */
export class ProcessRateLimiters extends RateLimiters {
  private readonly limiters = new Map<string, ProcessRateLimiter>();

  /** @param now seconds. @param maxLimiters remembered at once. Default 1000 */
  constructor(
    private readonly now?: () => number,
    private readonly maxLimiters = 1000,
  ) {
    super();
  }

  limiter(name: string, rate: RateLimit): ProcessRateLimiter {
    const key = JSON.stringify([name, rate.limit, rate.window]);
    const known = this.limiters.get(key) ?? new ProcessRateLimiter(rate, this.now);
    this.limiters.delete(key);
    this.limiters.set(key, known);
    const idle = this.limiters.size > this.maxLimiters ? this.limiters.keys().next().value : undefined;
    if (idle !== undefined) this.limiters.delete(idle);
    return known;
  }
}
