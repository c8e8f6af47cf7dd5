import type { ChainHead } from '../audit-event.js';
import type { SealedLine } from '../chain/record-seal.js';
import { DeliveryPump } from './delivery-pump.js';
import {
  type DeliveryLog,
  faultName,
  type KeeperState,
  type RecordDelivery,
  type RecordKeeper,
  RecordNotKept,
} from './record-delivery.js';

/** Records that may wait at once. */
const MAX_WAITING = 10_000;

interface Waiting {
  readonly record: SealedLine;
  kept(): void;
  notKept(reason: RecordNotKept): void;
}

/**
 * `onFailure: refuse`. Whoever made a record waits until it is kept. From the first failure on nothing new is let in, until
 * what waits has been delivered.
 */
export class RefusingKeeper implements RecordKeeper {
  readonly name: string;
  private readonly waiting: Waiting[] = [];
  private readonly pump: DeliveryPump;
  private failing = false;
  private closed = false;

  /** @param patience milliseconds for each attempt */
  constructor(
    delivery: RecordDelivery,
    patience: number,
    private readonly log: DeliveryLog,
  ) {
    this.name = delivery.name;
    this.pump = new DeliveryPump({
      delivery,
      patience,
      next: (limit) => Promise.resolve(this.waiting.slice(0, limit).map(({ record }) => record)),
      taken: (records) => {
        for (const { kept } of this.waiting.splice(0, records.length)) kept();
      },
      failed: (error) => this.failed(error),
      drained: () => this.recovered(),
    });
  }

  get state(): KeeperState {
    return this.failing || this.closed || this.isFull ? 'down' : 'up';
  }

  get isFull(): boolean {
    return this.waiting.length >= MAX_WAITING;
  }

  open(): Promise<ChainHead | null> {
    return this.pump.open();
  }

  keep(record: SealedLine): Promise<void> {
    return new Promise((kept, notKept) => {
      this.waiting.push({ record, kept, notKept });
      if (this.state === 'down') notKept(new RecordNotKept(this.name));
      else this.pump.run();
    });
  }

  async close(patience: number): Promise<void> {
    await this.pump.end(patience);
    this.closed = true;
    if (this.waiting.length === 0) return;
    this.log.warn(`${this.name}: ${this.waiting.length} audit records could not be delivered before the end`);
    this.giveUpWaiting();
  }

  private recovered(): void {
    if (this.failing) this.log.log(`${this.name}: audit records are kept again`);
    this.failing = false;
  }

  private failed(error: unknown): void {
    if (!this.failing)
      this.log.warn(`${this.name}: audit records cannot be kept (${faultName(error)}): calls are refused`);
    this.failing = true;
    this.giveUpWaiting();
  }

  /** Nobody waits any longer; the records stay. */
  private giveUpWaiting(): void {
    for (const { notKept } of this.waiting) notKept(new RecordNotKept(this.name));
  }
}
