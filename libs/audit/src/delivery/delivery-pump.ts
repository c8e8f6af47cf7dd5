import type { ChainHead } from '../audit-event.js';
import type { SealedLine } from '../chain/record-seal.js';
import { type RecordDelivery, RecordNotKept } from './record-delivery.js';
import { atMost, RetryDelay } from './retry-delay.js';

export interface PumpParts {
  readonly delivery: RecordDelivery;
  /** Milliseconds after which an attempt counts as failed. It is waited for all the same: one thing at a time. */
  readonly patience: number;
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
const FAREWELL = 1_000;

/** Delivers in order, one batch at a time, and comes back to what was not taken. */
export class DeliveryPump {
  private readonly delay = new RetryDelay();
  private opening: Promise<ChainHead | null> | null = null;
  private running: Promise<void> | null = null;
  private retry: NodeJS.Timeout | undefined;
  /** Something came while it was running. */
  private more = false;
  private ended = false;

  constructor(private readonly parts: PumpParts) {}

  /** @returns null when it could not be opened in time; it is tried again */
  async open(): Promise<ChainHead | null> {
    try {
      const head = await atMost(this.parts.patience, this.opened());
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
  async end(patience: number): Promise<void> {
    this.run();
    if (this.running) await atMost(patience, this.running);
    this.ended = true;
    clearTimeout(this.retry);
    // What waits for a place that hangs is not to keep the process alive.
    await atMost(FAREWELL, this.parts.delivery.close());
  }

  private async deliverAll(): Promise<void> {
    const { parts } = this;
    this.more = false;
    clearTimeout(this.retry);
    const slow = () => setTimeout(() => parts.failed(new RecordNotKept('no answer in time')), parts.patience);
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
