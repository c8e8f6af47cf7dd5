import type { BackpressureStrategy } from './live-query-options.js';

export interface EventQueueOptions<T> {
  readonly size: number;
  readonly strategy: BackpressureStrategy;
  readonly consume: (event: T) => void;
  /** An event was lost. */
  readonly onDrop: (which: 'oldest' | 'newest') => void;
  /** With `block`: nothing more may be added until `onRoom`. */
  readonly onFull?: () => void;
  readonly onRoom?: () => void;
}

/** Events taken at a time, before others get their turn. */
const BATCH = 100;

/** A bounded queue with one consumer, which never runs inside the one who adds. */
export class EventQueue<T> {
  readonly counts = { enqueued: 0, processed: 0, dropped: 0 };
  private readonly events: T[] = [];
  private scheduled = false;
  private stopped = false;
  private full = false;

  constructor(private readonly options: EventQueueOptions<T>) {}

  get length(): number {
    return this.events.length;
  }

  /** @returns false when it was not taken: the queue has stopped, or it was the newest of too many */
  add(event: T): boolean {
    if (this.stopped) return false;
    const { size, strategy } = this.options;
    if (this.events.length >= size && strategy !== 'block') {
      this.counts.dropped += 1;
      this.options.onDrop(strategy === 'drop_oldest' ? 'oldest' : 'newest');
      if (strategy === 'drop_newest') return false;
      this.events.shift();
    }
    this.events.push(event);
    this.counts.enqueued += 1;
    if (strategy === 'block' && this.events.length >= size && !this.full) {
      this.full = true;
      this.options.onFull?.();
    }
    this.schedule();
    return true;
  }

  /** What is waiting is forgotten. */
  stop(): void {
    this.stopped = true;
    this.events.length = 0;
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => this.drain());
  }

  private drain(): void {
    this.scheduled = false;
    for (const event of this.events.splice(0, BATCH)) {
      this.counts.processed += 1;
      this.options.consume(event);
    }
    if (this.full && this.events.length < this.options.size) {
      this.full = false;
      this.options.onRoom?.();
    }
    if (this.events.length > 0) this.schedule();
  }
}
