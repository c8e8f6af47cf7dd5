/** Verdict of one attempt: `null` when permitted, else seconds until another may succeed. */
export interface RateVerdict {
  readonly retryAfter: number;
  readonly limit: number;
  readonly window: number;
}

export interface RateLimit {
  /** Calls permitted per window. Default 60. */
  readonly limit: number;
  /** Seconds. Default 60. */
  readonly window: number;
}

export const DEFAULT_RATE_LIMIT: RateLimit = { limit: 60, window: 60 };

/**
 * Counts the calls of one principal. A limiter that throws is treated as exhausted (fail closed).
 * Implementations over shared state count for all replicas; `ProcessRateLimiter` counts for its own process only.
 */
export abstract class RateLimiter {
  /** What an exhausted budget is said to be when the limiter itself fails. Default 60 per 60 s. */
  readonly rate?: RateLimit;

  /** @param key whose budget is spent: stable per principal */
  abstract check(key: string): Promise<RateVerdict | null> | RateVerdict | null;
}

export interface RateUsage extends RateLimit {
  readonly used: number;
  readonly remaining: number;
  /** Seconds; null while a call is free. */
  readonly retryAfter: number | null;
}

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

/**
 * Sliding log in this process: an attempt counts until it is older than the window; refused attempts are not recorded.
 * Not shared between replicas.
 */
export class ProcessRateLimiter extends RateLimiter {
  private readonly logs = new Map<string, SlidingLog>();

  constructor(
    override readonly rate: RateLimit = DEFAULT_RATE_LIMIT,
    private readonly now: () => number = () => performance.now() / 1000,
    /** Principals remembered; the longest idle is forgotten first. */
    private readonly maxPrincipals = 10_000,
  ) {
    super();
    if (!(rate.limit > 0) || !(rate.window > 0))
      throw new TypeError('rate limit and window must be positive');
  }

  check(key: string): RateVerdict | null {
    const at = this.now();
    const { limit, window } = this.rate;
    const log = this.logOf(key);
    log.forgetUntil(at - window);
    if (log.size < limit || log.oldest === undefined) {
      log.record(at);
      return null;
    }
    return { retryAfter: Math.max(log.oldest + window - at, 0.1), limit, window };
  }

  /** Where a principal stands; asking spends nothing. */
  usage(key: string): RateUsage {
    const at = this.now();
    const { limit, window } = this.rate;
    const log = this.logs.get(key);
    log?.forgetUntil(at - window);
    const used = log?.size ?? 0;
    const oldest = log?.oldest;
    const free = used < limit || oldest === undefined;
    return {
      limit,
      window,
      used,
      remaining: Math.max(limit - used, 0),
      retryAfter: free ? null : Math.max(oldest + window - at, 0.1),
    };
  }

  /** Forgets what a principal spent. */
  reset(key: string): void {
    this.logs.delete(key);
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

/** A sub-agent's own budget within that of the agent that made it: a call needs both. */
export class NarrowedRateLimiter extends RateLimiter {
  constructor(
    private readonly outer: RateLimiter,
    private readonly own: RateLimiter,
  ) {
    super();
  }

  async check(key: string): Promise<RateVerdict | null> {
    return (await this.outer.check(key)) ?? (await this.own.check(key));
  }
}
