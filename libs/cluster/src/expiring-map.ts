/** Milliseconds; only differences count. */
export type Clock = () => number;

export const processClock: Clock = () => performance.now();

interface Entry<V> {
  readonly value: V;
  readonly expires: number;
}

/** A bounded map whose entries end: what a process store is made of. The entry set longest ago is first. */
export class ExpiringMap<V> {
  private readonly entries = new Map<string, Entry<V>>();
  /** No entry ends before: until then there is no point in looking for room again. */
  private nextExpiry = -Infinity;

  /** @param maxEntries kept at once, expired ones included until they are met */
  constructor(
    private readonly maxEntries: number,
    private readonly now: Clock,
  ) {
    if (!Number.isSafeInteger(maxEntries) || maxEntries < 1)
      throw new TypeError('the size of a store must be a positive integer');
  }

  get(key: string): V | undefined {
    const entry = this.entries.get(key);
    if (!entry) return undefined;
    if (entry.expires > this.now()) return entry.value;
    this.entries.delete(key);
    return undefined;
  }

  /** Forgets the entry set longest ago when there is no room. */
  set(key: string, value: V, ttl: number): void {
    this.entries.delete(key);
    if (this.entries.size >= this.maxEntries) {
      const oldest = this.entries.keys().next().value;
      if (oldest !== undefined) this.entries.delete(oldest);
    }
    const expires = this.now() + ttl;
    this.nextExpiry = Math.min(this.nextExpiry, expires);
    this.entries.set(key, { value, expires });
  }

  /** Whether nothing more fits although every expired entry was removed. */
  isFull(): boolean {
    const now = this.now();
    if (this.entries.size < this.maxEntries) return false;
    if (now < this.nextExpiry) return true;
    this.nextExpiry = Infinity;
    for (const [key, { expires }] of this.entries) {
      if (expires <= now) this.entries.delete(key);
      else this.nextExpiry = Math.min(this.nextExpiry, expires);
    }
    return this.entries.size >= this.maxEntries;
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
    this.entries.delete(key);
  }
}
