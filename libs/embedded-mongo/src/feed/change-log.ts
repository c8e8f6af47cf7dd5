import { Timestamp } from 'bson';
import type { Change, ChangeOrigin } from '../storage/change.js';
import { type Document, isDocument } from '../bson/document.js';
import { mongoError } from '../errors.js';

/** One change with its place in time. */
export interface ChangeLogEntry {
  readonly key: string;
  readonly clusterTime: Timestamp;
  readonly wallTime: Date;
  readonly change: Change;
  readonly origin: ChangeOrigin | undefined;
  readonly bytes: number;
}

/** Fixed cost counted for an entry beside its documents. */
const ENTRY_BYTES = 200;

/**
 * The recent changes, oldest first, bounded by the bytes of their documents. It starts empty with the process, so a
 * resume point from an earlier run is gone and is answered 286.
 */
export class ChangeLog {
  private entries: (ChangeLogEntry | undefined)[] = [];
  /** Position of `entries[0]`, counted since the start. */
  private base = 0;
  /** How many of the first entries are dropped already. */
  private dropped = 0;
  private held = 0;
  private seconds = 0;
  private increment = 0;
  /** Nothing is known about changes before this key. */
  private readonly beginning: string;
  /** Key of the last change that was dropped. */
  private forgotten: string | undefined;
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly maxBytes: number,
    private readonly now: () => number = Date.now,
  ) {
    this.beginning = toStartKey(this.tick());
  }

  /** The cluster time of the latest change. */
  get time(): Timestamp {
    return new Timestamp({ t: this.seconds, i: this.increment });
  }

  /** The position after the latest change. */
  get end(): number {
    return this.base + this.entries.length;
  }

  append(changes: readonly Change[], origin?: ChangeOrigin): void {
    const clusterTime = this.tick();
    const wallTime = new Date(this.now());
    changes.forEach((change, position) => {
      const bytes = measureSize(change);
      this.entries.push({ key: logKey(clusterTime, position), clusterTime, wallTime, change, origin, bytes });
      this.held += bytes;
    });
    this.evict();
    for (const listener of this.listeners) listener();
  }

  /** The entry at a position; undefined when it is not there yet or no longer. */
  at(position: number): ChangeLogEntry | undefined {
    return this.entries[position - this.base];
  }

  /** True when entries before this position were dropped. */
  hasForgotten(position: number): boolean {
    return position < this.base + this.dropped;
  }

  /** The position after `key`; undefined when changes after it may have been dropped. */
  positionAfter(key: string): number | undefined {
    if (key < this.beginning || (this.forgotten !== undefined && key < this.forgotten)) return undefined;
    return this.base + this.firstIndex((entry) => entry.key > key);
  }

  /** The position of the first change at or after `key`; undefined when such changes may have been dropped. */
  positionFrom(key: string): number | undefined {
    if (key < this.beginning || (this.forgotten !== undefined && key <= this.forgotten)) return undefined;
    return this.base + this.firstIndex((entry) => entry.key >= key);
  }

  /** Calls `listener` after every append, until the returned function is called. */
  onAppend(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tick(): Timestamp {
    const seconds = Math.floor(this.now() / 1000);
    if (seconds > this.seconds) {
      this.seconds = seconds;
      this.increment = 1;
    } else {
      this.increment += 1;
    }
    return this.time;
  }

  private evict(): void {
    while (this.held > this.maxBytes && this.dropped < this.entries.length - 1) {
      const oldest = this.entries[this.dropped];
      this.held -= oldest?.bytes ?? 0;
      this.forgotten = oldest?.key;
      this.entries[this.dropped] = undefined;
      this.dropped += 1;
    }
    // The array is cut only when half of it is gone: cutting it each time would cost its whole length.
    if (this.dropped * 2 <= this.entries.length) return;
    this.entries = this.entries.slice(this.dropped);
    this.base += this.dropped;
    this.dropped = 0;
  }

  private firstIndex(holds: (entry: ChangeLogEntry) => boolean): number {
    let low = this.dropped;
    let high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (holds(this.entries[middle] as ChangeLogEntry)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

function measureSize(change: Change): number {
  const before = 'before' in change ? change.before.raw.bytes.length : 0;
  const after = 'after' in change ? change.after.raw.bytes.length : 0;
  return ENTRY_BYTES + before + after;
}

const hex = (value: number): string => value.toString(16).toUpperCase().padStart(8, '0');

/** A place in the change log: cluster time and position within its group, as text that sorts like the log. */
const logKey = (time: Timestamp, position: number): string => hex(time.t) + hex(time.i) + hex(position);

/** The place after everything of this cluster time. */
export const toEndKey = (time: Timestamp): string => logKey(time, 0xffffffff);

/** The place before everything of this cluster time. */
export const toStartKey = (time: Timestamp): string => logKey(time, 0);

const PREFIX = '82';
const EVENT = '00';
const INVALIDATE = '01';

export function createToken(key: string, invalidate = false): Document {
  return { _data: PREFIX + key + (invalidate ? INVALIDATE : EVENT) };
}

/** Errors: 50811 when the token was not made by this server. */
export function readToken(token: unknown): { key: string; invalidate: boolean } {
  const data = isDocument(token) ? token['_data'] : undefined;
  const match = typeof data === 'string' ? /^82([0-9A-F]{24})(00|01)$/.exec(data) : null;
  if (!match?.[1]) throw mongoError(50811, 'Attempted to decode a resume token that is not valid');
  return { key: match[1], invalidate: match[2] === INVALIDATE };
}
