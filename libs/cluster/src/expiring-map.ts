/** Milliseconds; only differences count. */
export type Clock = () => number;

export const processClock: Clock = () => performance.now();

interface Entry<V> {
  readonly value: V;
  readonly expires: number;
  readonly weight: number;
}

/** Bytes that one store of texts holds at once, so that what callers send and get cannot fill the memory. */
export const MAX_STORED_BYTES = 64 * 1024 * 1024;

/** A bounded map whose entries end: what a process store is made of. The entry set longest ago is first. */
export class ExpiringMap<V> {
  private readonly entries = new Map<string, Entry<V>>();
  /** No entry ends before: until then there is no point in looking for room again. */
  private nextExpiry = -Infinity;
  private weight = 0;

  /**
   * @param maxEntries kept at once, expired ones included until they are met
   * @param maxWeight of all entries together. Default: they weigh nothing
   */
  constructor(
    private readonly maxEntries: number,
    private readonly now: Clock,
    private readonly maxWeight = Infinity,
  ) {
    if (!Number.isSafeInteger(maxEntries) || maxEntries < 1)
      throw new TypeError('the size of a store must be a positive integer');
  }

  /** Entries kept, expired ones included until they are met. */
  get size(): number {
    return this.entries.size;
  }

  get(key: string): V | undefined {
    const entry = this.entries.get(key);
    if (!entry) return undefined;
    if (entry.expires > this.now()) return entry.value;
    this.delete(key);
    return undefined;
  }

  /** Forgets the entries set longest ago when there is no room. One that is too heavy by itself is kept alone. */
  set(key: string, value: V, ttl: number, weight = 0): void {
    this.delete(key);
    for (const oldest of this.entries.keys()) {
      if (this.entries.size < this.maxEntries && this.weight + weight <= this.maxWeight) break;
      this.delete(oldest);
    }
    this.put(key, value, ttl, weight);
  }

  /** Lets nothing go for it: whoever puts has asked `isFull`, or changes what is there. */
  put(key: string, value: V, ttl: number, weight = 0): void {
    this.delete(key);
    const expires = this.now() + ttl;
    this.nextExpiry = Math.min(this.nextExpiry, expires);
    this.weight += weight;
    this.entries.set(key, { value, expires, weight });
  }

  /** Whether nothing more fits although every expired entry was removed. */
  isFull(): boolean {
    const now = this.now();
    if (this.hasRoom()) return false;
    if (now < this.nextExpiry) return true;
    this.nextExpiry = Infinity;
    for (const [key, { expires }] of this.entries) {
      if (expires <= now) this.delete(key);
      else this.nextExpiry = Math.min(this.nextExpiry, expires);
    }
    return !this.hasRoom();
  }

  /** What has not ended, the entry set last first. */
  latest(limit: number): [key: string, value: V][] {
    const now = this.now();
    const alive = [...this.entries].filter(([, { expires }]) => expires > now);
    const first = Math.max(alive.length - limit, 0);
    return alive
      .slice(first)
      .reverse()
      .map(([key, { value }]) => [key, value]);
  }

  delete(key: string): void {
    this.weight -= this.entries.get(key)?.weight ?? 0;
    this.entries.delete(key);
  }

  private hasRoom(): boolean {
    return this.entries.size < this.maxEntries && this.weight < this.maxWeight;
  }
}
