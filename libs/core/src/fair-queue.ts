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
    await this.queued(key, signal);
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
      this.end(key);
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

  private end(key: string): void {
    this.running -= 1;
    const left = (this.runningOf.get(key) ?? 1) - 1;
    if (left > 0) this.runningOf.set(key, left);
    else this.runningOf.delete(key);
    while (this.running < this.options.atOnce && this.serveNext());
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

  private queued(key: string, signal: AbortSignal | undefined): Promise<void> {
    const { waitingPerKey, waiting: waitingOfAll = Infinity, timeout } = this.options;
    const queue = this.queues.get(key) ?? [];
    if (queue.length >= waitingPerKey) throw new NoCapacityError(true);
    if (this.waiting >= waitingOfAll) throw new NoCapacityError(!this.mayRun(key));
    return new Promise((resolve, reject) => {
      const giveUp = (reason: unknown) => {
        this.leave(key, entry);
        done();
        reject(reason as Error);
      };
      const gone = () => giveUp(signal?.reason);
      const timer = setTimeout(() => giveUp(new NoCapacityError(!this.mayRun(key))), timeout);
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', gone);
      };
      const entry: Waiting = {
        begin: () => {
          done();
          resolve();
        },
      };
      signal?.addEventListener('abort', gone, { once: true });
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
