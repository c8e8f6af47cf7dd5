/** Verdict of one attempt: `null` when permitted, else seconds until another may succeed. */
export interface RateVerdict {
  /** Seconds until another call may be permitted. */
  readonly retryAfter: number;
  /** Calls permitted per window. */
  readonly limit: number;
  /** Seconds. */
  readonly window: number;
}

/** How many calls, in which time. */
export interface RateLimit {
  /** Calls permitted per window. Default 60. */
  readonly limit: number;
  /** Seconds. Default 60. */
  readonly window: number;
}

export const DEFAULT_RATE_LIMIT: RateLimit = { limit: 60, window: 60 };

/** The shortest wait that is told, in seconds. */
export const SHORTEST_RETRY = 0.1;

/**
 * Counts the calls of one principal. A limiter that throws is treated as exhausted (fail closed).
 * Anything with a `check` may be injected.
 */
export abstract class RateLimiter {
  /** What it permits, where that is known. Default 60 per 60 s. */
  readonly rate?: RateLimit;

  /** @param key whose budget is spent: stable per principal */
  abstract check(key: string): Promise<RateVerdict | null>;
}

/** Where a principal stands at this moment. */
export interface RateUsage extends RateLimit {
  /** Calls within the window. */
  readonly used: number;
  /** Calls that are left, never below 0. */
  readonly remaining: number;
  /** Seconds, at least 0.1; null while a call is free. */
  readonly retryAfter: number | null;
}

/**
 * A limiter of ours: a sliding log, in which an attempt counts until it is older than the window and a refused one is not
 * recorded.
 */
export abstract class SlidingRateLimiter extends RateLimiter {
  /** @throws TypeError for a limit or window that permits nothing */
  constructor(
    /** What is permitted. */
    override readonly rate: RateLimit,
  ) {
    super();
    if (!(rate.limit > 0) || !(rate.window > 0))
      throw new TypeError('rate limit and window must be positive');
  }

  /** Where a principal stands; asking spends nothing. */
  abstract usage(key: string): Promise<RateUsage>;
  /** Forgets what a principal spent. */
  abstract reset(key: string): Promise<void>;

  /** What `usage` answers. @param retryAfter seconds; shorter than 0.1 is told as 0.1 */
  protected usageOf(used: number, retryAfter: number | null): RateUsage {
    const { limit, window } = this.rate;
    const wait = retryAfter === null ? null : Math.max(retryAfter, SHORTEST_RETRY);
    return { limit, window, used, remaining: Math.max(limit - used, 0), retryAfter: wait };
  }

  /** What `check` answers when it refuses. @param retryAfter seconds; shorter than 0.1 is told as 0.1 */
  protected refusal(retryAfter: number): RateVerdict {
    return { retryAfter: Math.max(retryAfter, SHORTEST_RETRY), ...this.rate };
  }
}

/** Where limiters count: limiters of one name and rate share what they count, on every replica that shares the place. */
export abstract class RateLimiters {
  /** The limiter of this name; the same name has the same counts. */
  abstract limiter(name: string, rate: RateLimit): SlidingRateLimiter;
}

/** A sub-agent's own budget within that of the agent that made it: a call needs both. */
export class NarrowedRateLimiter extends RateLimiter {
  override readonly rate: RateLimit;

  constructor(
    private readonly outer: RateLimiter,
    private readonly own: RateLimiter,
  ) {
    super();
    this.rate = own.rate ?? outer.rate ?? DEFAULT_RATE_LIMIT;
  }

  async check(key: string): Promise<RateVerdict | null> {
    return (await this.outer.check(key)) ?? (await this.own.check(key));
  }
}
