import type { ChainHead } from '../audit-record.js';
import type { SealedLine } from '../chain/audit-chain.js';

/** One place that records go to. It is asked for one thing at a time, and again for what it did not take. */
export interface RecordDelivery {
  /** For the operator's log: no address, no password. */
  readonly name: string;
  /** Records that it takes at once. */
  readonly batch: number;
  /**
   * What it holds last, where it can tell: the next chain names it as what came before.
   * @throws when it cannot be reached
   */
  open(): Promise<ChainHead | null>;
  /** All of them, in order, kept as firmly as this place promises. @throws when any of them is not */
  deliver(records: readonly SealedLine[]): Promise<void>;
  close(): Promise<void>;
}

/** How a place does, for the operator. `buffering`: records wait on disk for it. `down`: calls are refused. */
export const KEEPER_STATES = ['up', 'buffering', 'down'] as const;
export type KeeperState = (typeof KEEPER_STATES)[number];

/** A place under its rule for failures. */
export interface RecordKeeper {
  readonly name: string;
  readonly state: KeeperState;
  /** Nothing more can even wait. */
  readonly isFull: boolean;
  /** @returns the head of what is there already; null when there is nothing, or nobody answers */
  open(): Promise<ChainHead | null>;
  /**
   * @returns a promise when somebody has to wait for it: kept when it resolves. The record is not forgotten when it
   * rejects, and is delivered when that is possible again.
   */
  keep(record: SealedLine): Promise<void> | undefined;
  /** Delivers what waits as far as that is possible within `patience` milliseconds. */
  close(timeout: number): Promise<void>;
}

/** Why a record is not kept yet. */
export class RecordNotKept extends Error {
  override readonly name = 'RecordNotKept';
}

/** Where the operator hears of places that fail and come back. */
export interface DeliveryLog {
  log(line: string): void;
  warn(line: string): void;
}

/** A fault in words that hold neither an address nor a path of the network. */
export function errorName(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown fault';
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? `${error.name} ${code}` : error.name;
}

interface DeliveryWorkerOptions {
  readonly delivery: RecordDelivery;
  /** Milliseconds after which an attempt counts as failed. It is waited for all the same: one thing at a time. */
  readonly timeout: number;
  /** What is to be delivered next, at most so many; empty: nothing. */
  next(limit: number): Promise<readonly SealedLine[]>;
  /** The latest batch was taken. */
  taken(records: readonly SealedLine[]): Promise<void> | void;
  /** An attempt failed, or takes too long. */
  failed(error: unknown): void;
  /** Nothing is left to deliver. */
  drained(): void;
}

/** Milliseconds that a place may take to close. */
const CLOSE_TIMEOUT = 1_000;

/** Delivers in order, one batch at a time, and comes back to what was not taken. */
export class DeliveryWorker {
  private readonly delay = new RetryDelay();
  private opening: Promise<ChainHead | null> | null = null;
  private running: Promise<void> | null = null;
  private retry: NodeJS.Timeout | undefined;
  /** Something came while it was running. */
  private more = false;
  private ended = false;

  constructor(private readonly parts: DeliveryWorkerOptions) {}

  /** @returns null when it could not be opened in time; it is tried again */
  async open(): Promise<ChainHead | null> {
    try {
      const head = await atMost(this.parts.timeout, this.opened());
      if (head !== undefined) return head;
      this.failed(new RecordNotKept('no answer in time'));
    } catch (error) {
      this.failed(error);
    }
    return null;
  }

  /** Something is there to deliver. */
  run(): void {
    if (this.ended) return;
    if (this.running) {
      this.more = true;
      return;
    }
    this.running = this.deliverAll().finally(() => {
      this.running = null;
      // It came after the last look.
      if (this.more) this.run();
    });
  }

  /** Tries once more, for at most `patience` milliseconds. */
  async end(timeout: number): Promise<void> {
    this.run();
    if (this.running) await atMost(timeout, this.running);
    this.ended = true;
    clearTimeout(this.retry);
    // What waits for a place that hangs is not to keep the process alive.
    await atMost(CLOSE_TIMEOUT, this.parts.delivery.close());
  }

  private async deliverAll(): Promise<void> {
    const { parts } = this;
    this.more = false;
    clearTimeout(this.retry);
    const slow = () => setTimeout(() => parts.failed(new RecordNotKept('no answer in time')), parts.timeout);
    let watch: NodeJS.Timeout | undefined;
    try {
      watch = slow();
      await this.opened();
      for (let batch = await this.next(); batch.length > 0; batch = await this.next()) {
        clearTimeout(watch);
        watch = slow();
        await parts.delivery.deliver(batch);
        await parts.taken(batch);
        this.delay.reset();
      }
      parts.drained();
    } catch (error) {
      this.failed(error);
    } finally {
      clearTimeout(watch);
    }
  }

  private next(): Promise<readonly SealedLine[]> {
    return this.parts.next(this.parts.delivery.batch);
  }

  private opened(): Promise<ChainHead | null> {
    this.opening ??= this.parts.delivery.open().catch((error: unknown) => {
      this.opening = null;
      throw error;
    });
    return this.opening;
  }

  private failed(error: unknown): void {
    this.parts.failed(error);
    this.more = false;
    clearTimeout(this.retry);
    if (this.ended) return;
    this.retry = setTimeout(() => this.run(), this.delay.next());
    this.retry.unref();
  }
}

const SHORTEST = 250;
const LONGEST = 30_000;

/** Milliseconds before each next attempt: doubled each time, and never the same for all replicas. */
class RetryDelay {
  private failures = 0;

  next(): number {
    const delay = Math.min(SHORTEST * 2 ** this.failures, LONGEST);
    this.failures = Math.min(this.failures + 1, 16);
    return delay * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.failures = 0;
  }
}

/** The work's own end, or after `milliseconds` nothing: the work goes on. */
async function atMost<T>(milliseconds: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), milliseconds);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
