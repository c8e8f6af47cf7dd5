import { ExpiringMap } from '#state';

interface Entry<T> {
  readonly value: Promise<T>;
  readonly until: number;
}

/**
 * Caches promised values for a limited time. Failures and null are not cached; concurrent requests for a key share one load.
 * When it is full, the oldest value of the owner that has most is removed.
 */
export class ExpiringCache<T> {
  private entries: ExpiringMap<Entry<T>>;

  /** @param toOwner the owner of a value, where one caller could have many keys. Default: none */
  constructor(
    private readonly lifetime: number,
    private readonly maxEntries: number,
    private readonly now: () => number,
    private readonly toOwner?: (value: NonNullable<T>) => string,
  ) {
    this.entries = new ExpiringMap(maxEntries, now);
  }

  get(key: string, load: () => Promise<T>): Promise<T> {
    const known = this.entries.get(key);
    if (known) return known.value;
    const entry: Entry<T> = { value: load(), until: this.now() + this.lifetime };
    this.entries.set(key, entry, this.lifetime);
    entry.value.then(
      (value) => this.settle(key, entry, value),
      () => this.settle(key, entry, null),
    );
    return entry.value;
  }

  forget(key: string): void {
    this.entries.delete(key);
  }

  clear(): void {
    this.entries = new ExpiringMap(this.maxEntries, this.now);
  }

  private settle(key: string, entry: Entry<T>, value: T | null): void {
    if (this.entries.get(key) !== entry) return;
    if (value === null || value === undefined) this.forget(key);
    else if (this.toOwner)
      this.entries.put(key, entry, entry.until - this.now(), { owner: this.toOwner(value) });
  }
}
