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

/** The shortest `retryAfter` that is returned, in seconds. */
export const MIN_RETRY_AFTER = 0.1;

/** Counts the calls of one principal. A limiter that throws is treated as exhausted (fail closed). */
export abstract class RateLimiter {
  /** What it permits, where that is known. Default 60 per 60 s. */
  readonly rate?: RateLimit;

  /** @param key whose budget is spent: stable per principal */
  abstract check(key: string): Promise<RateVerdict | null>;
}

/** What a limiter of the application answers: true, null and nothing permit the call. Another answer, such as false, is a failure. */
export type LimiterAnswer =
  boolean | null | undefined | void | (Pick<RateVerdict, 'retryAfter'> & Partial<RateLimit>);

/**
 * A limiter of the application, for all processes that share its store. An error with a number `retryAfter` (and `limit`,
 * `window`) is a limit as well; with any other error the limiter failed, which its caller cannot tell from a limit.
 */
export interface AgentRateLimiter {
  /** What it permits, for the text of a refusal. Default 60 per 60 s. */
  readonly rate?: RateLimit;
  /** Counts a call. @param key whose call it is: stable per principal */
  check(key: string): LimiterAnswer | Promise<LimiterAnswer>;
}

/** Reads the answers of a limiter of the application. */
export class InjectedRateLimiter extends RateLimiter {
  override readonly rate: RateLimit;

  constructor(private readonly given: AgentRateLimiter) {
    super();
    this.rate = given.rate ?? DEFAULT_RATE_LIMIT;
  }

  async check(key: string): Promise<RateVerdict | null> {
    let answer: unknown;
    try {
      answer = await this.given.check(key);
    } catch (error) {
      const limit = this.toVerdict(error);
      if (limit) return limit;
      throw error;
    }
    if (answer === true || answer === null || answer === undefined) return null;
    const limit = this.toVerdict(answer);
    if (limit) return limit;
    throw new TypeError(
      'the rate limiter answered with something else than true, null or { retryAfter, limit, window }',
    );
  }

  private toVerdict(answer: unknown): RateVerdict | null {
    if (answer === null || typeof answer !== 'object') return null;
    const { retryAfter, limit, window } = answer as Partial<Record<keyof RateVerdict, unknown>>;
    if (!isAmount(retryAfter)) return null;
    return {
      retryAfter: Math.max(retryAfter, MIN_RETRY_AFTER),
      limit: isAmount(limit) ? limit : this.rate.limit,
      window: isAmount(window) ? window : this.rate.window,
    };
  }
}

const isAmount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;

/**
 * Counts a call. While the limiter fails, every call is refused as by the limit, for a random time: nobody can tell the two
 * apart.
 * @param report receives the error, for the operator
 */
export async function spendLimit(
  limiter: Pick<RateLimiter, 'check' | 'rate'>,
  key: string,
  report: (error: unknown) => void,
): Promise<RateVerdict | null> {
  try {
    return await limiter.check(key);
  } catch (error) {
    report(error);
    return { ...(limiter.rate ?? DEFAULT_RATE_LIMIT), retryAfter: failureDelay() };
  }
}

/** Seconds that a call waits while its limit cannot be counted, spread over those that are refused together. */
export const failureDelay = (): number => 1 + Math.random() * 4;

/** How much of its limit a principal has used. */
export interface RateUsage extends RateLimit {
  /** Calls within the window. */
  readonly used: number;
  /** Calls that are left, never below 0. */
  readonly remaining: number;
  /** Seconds, at least 0.1; null while a call is free. */
  readonly retryAfter: number | null;
}

/**
 * The built-in limiter: a sliding log, in which an attempt counts until it is older than the window and a refused one is not
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

  /** How much a principal has used. Does not count as a call. */
  abstract usage(key: string): Promise<RateUsage>;
  /** Clears the count of a principal. */
  abstract reset(key: string): Promise<void>;

  /** The result of `usage`. @param retryAfter seconds; raised to 0.1 when shorter */
  protected toUsage(used: number, retryAfter: number | null): RateUsage {
    const { limit, window } = this.rate;
    const wait = retryAfter === null ? null : Math.max(retryAfter, MIN_RETRY_AFTER);
    return { limit, window, used, remaining: Math.max(limit - used, 0), retryAfter: wait };
  }

  /** The result of `check` when it refuses. @param retryAfter seconds; raised to 0.1 when shorter */
  protected refusal(retryAfter: number): RateVerdict {
    return { retryAfter: Math.max(retryAfter, MIN_RETRY_AFTER), ...this.rate };
  }
}

/** The store of the counts: limiters of one name and rate share their counts, on every replica that shares the store. */
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

/** The times of the attempts that still count, oldest first; removal is amortised O(1) for any limit. */
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

/** Counts in this process's memory, for this process only. */
export class ProcessRateLimiter extends SlidingRateLimiter {
  private readonly logs = new Map<string, SlidingLog>();
  /** The last one of the map. */
  private latest: { readonly key: string; readonly log: SlidingLog } | null = null;

  constructor(
    rate: RateLimit = DEFAULT_RATE_LIMIT,
    private readonly now: () => number = () => performance.now() / 1000,
    /** Maximum principals stored; the longest idle is removed first. */
    private readonly maxPrincipals = 10_000,
  ) {
    super(rate);
  }

  check(key: string): Promise<RateVerdict | null> {
    const at = this.now();
    const { limit, window } = this.rate;
    const log = this.findLog(key);
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
    return Promise.resolve(this.toUsage(used, free ? null : oldest + window - at));
  }

  reset(key: string): Promise<void> {
    this.logs.delete(key);
    this.latest = null;
    return Promise.resolve();
  }

  /** Re-inserting keeps the map in order of last use, so the first key is the longest idle. */
  private findLog(key: string): SlidingLog {
    if (this.latest?.key === key) return this.latest.log;
    const log = this.logs.get(key) ?? new SlidingLog();
    this.logs.delete(key);
    this.logs.set(key, log);
    if (this.logs.size > this.maxPrincipals) {
      const idle = this.logs.keys().next().value;
      if (idle !== undefined) this.logs.delete(idle);
    }
    this.latest = this.maxPrincipals > 0 ? { key, log } : null;
    return log;
  }
}

/** Limiters stored at once. */
const MAX_LIMITERS = 1000;

/** Limiters of one process. The application chooses the names of sub-agents: the longest unused limiter is removed first. */
export class ProcessRateLimiters extends RateLimiters {
  private readonly limiters = new Map<string, ProcessRateLimiter>();

  /** @param now seconds */
  constructor(private readonly now?: () => number) {
    super();
  }

  limiter(name: string, rate: RateLimit): ProcessRateLimiter {
    const key = JSON.stringify([name, rate.limit, rate.window]);
    const known = this.limiters.get(key) ?? new ProcessRateLimiter(rate, this.now);
    this.limiters.delete(key);
    this.limiters.set(key, known);
    const idle = this.limiters.size > MAX_LIMITERS ? this.limiters.keys().next().value : undefined;
    if (idle !== undefined) this.limiters.delete(idle);
    return known;
  }
}

/** How much work runs at once and how much may wait. */
export interface FairQueueOptions {
  /** Tasks that run at once. */
  readonly atOnce: number;
  /** Tasks of one key that run at once. Default: `atOnce`. */
  readonly perKey?: number;
  /** Tasks of one key that may wait; a further one is refused. */
  readonly waitingPerKey: number;
  /** Tasks of all keys that may wait; a further one is refused. Default: only `waitingPerKey` limits them. */
  readonly waiting?: number;
  /** Milliseconds that a task waits before it is refused. */
  readonly timeout: number;
}

/** The queue is full, or the task waited longer than the timeout. */
export class NoCapacityError extends Error {
  constructor(
    /** True: the limit of the key itself was reached. False: the limit of all keys together. */
    readonly own: boolean,
  ) {
    super(own ? 'too much work of one key at once' : 'too much work at once');
    this.name = 'NoCapacityError';
  }
}

interface Waiting {
  begin(): void;
}

/**
 * Limits how many tasks run at once; the others wait in one queue per key. Waiting keys are served round robin, so that a
 * key with many tasks delays only its own.
 */
export class FairQueue {
  private running = 0;
  private waiting = 0;
  private readonly runningOf = new Map<string, number>();
  /** In the order in which the keys are served. */
  private readonly queues = new Map<string, Waiting[]>();

  constructor(private readonly options: FairQueueOptions) {}

  /** @throws NoCapacityError; the reason of the signal when it aborts while the task waits */
  async run<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const end = await this.turn(key, signal);
    try {
      return await work();
    } finally {
      end();
    }
  }

  /**
   * Waits for a slot.
   * @returns releases the slot; may be called more than once
   * @throws NoCapacityError; the reason of the signal when it aborts while waiting
   */
  async turn(key: string, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    const now = this.turnNow(key);
    if (now) return now;
    await this.waitInQueue(key, signal);
    return this.release(key);
  }

  /** Takes a slot that is free now. @returns as `turn`; null where the task has to wait */
  turnNow(key: string): (() => void) | null {
    if (this.running >= this.options.atOnce || !this.mayRun(key)) return null;
    this.begin(key);
    return this.release(key);
  }

  private release(key: string): () => void {
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.running -= 1;
      const left = (this.runningOf.get(key) ?? 1) - 1;
      if (left > 0) this.runningOf.set(key, left);
      else this.runningOf.delete(key);
      while (this.running < this.options.atOnce && this.serveNext());
    };
  }

  private mayRun(key: string): boolean {
    const { perKey, atOnce } = this.options;
    return (this.runningOf.get(key) ?? 0) < (perKey ?? atOnce);
  }

  private begin(key: string): void {
    this.running += 1;
    this.runningOf.set(key, (this.runningOf.get(key) ?? 0) + 1);
  }

  private serveNext(): boolean {
    for (const [key, queue] of this.queues) {
      const next = queue[0];
      if (!next || !this.mayRun(key)) continue;
      this.leave(key, next);
      this.begin(key);
      next.begin();
      return true;
    }
    return false;
  }

  private waitInQueue(key: string, signal: AbortSignal | undefined): Promise<void> {
    const { waitingPerKey, waiting: waitingOfAll = Infinity, timeout } = this.options;
    const queue = this.queues.get(key) ?? [];
    if (queue.length >= waitingPerKey) throw new NoCapacityError(true);
    if (this.waiting >= waitingOfAll) throw new NoCapacityError(!this.mayRun(key));
    return new Promise((resolve, reject) => {
      const giveUp = (reason: unknown) => {
        this.leave(key, entry);
        settleTurn();
        reject(reason as Error);
      };
      const giveUpTurn = () => giveUp(signal?.reason);
      const timer = setTimeout(() => giveUp(new NoCapacityError(!this.mayRun(key))), timeout);
      const settleTurn = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', giveUpTurn);
      };
      const entry: Waiting = {
        begin: () => {
          settleTurn();
          resolve();
        },
      };
      signal?.addEventListener('abort', giveUpTurn, { once: true });
      queue.push(entry);
      this.queues.set(key, queue);
      this.waiting += 1;
    });
  }

  /** Moves the key to the end of the order, or removes it when its queue is empty. */
  private leave(key: string, entry: Waiting): void {
    const queue = this.queues.get(key);
    const at = queue?.indexOf(entry) ?? -1;
    if (!queue || at < 0) return;
    queue.splice(at, 1);
    this.waiting -= 1;
    if (at === 0) this.queues.delete(key);
    if (queue.length === 0) this.queues.delete(key);
    else if (at === 0) this.queues.set(key, queue);
  }
}
