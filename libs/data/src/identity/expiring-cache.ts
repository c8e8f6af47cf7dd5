interface Entry<T> {
  readonly value: Promise<T>;
  readonly until: number;
}

/** Keeps promised values for a while. Failures and null are not kept; one load runs for all who ask at the same moment. */
export class ExpiringCache<T> {
  private readonly entries = new Map<string, Entry<T>>();

  constructor(
    private readonly lifetime: number,
    private readonly maxEntries: number,
    private readonly now: () => number,
  ) {}

  get(key: string, load: () => Promise<T>): Promise<T> {
    const known = this.entries.get(key);
    if (known && known.until > this.now()) return known.value;
    const entry: Entry<T> = { value: load(), until: this.now() + this.lifetime };
    this.entries.delete(key);
    this.entries.set(key, entry);
    const drop = () => {
      if (this.entries.get(key) === entry) this.entries.delete(key);
    };
    entry.value.then((value) => {
      if (value === null) drop();
    }, drop);
    this.evict();
    return entry.value;
  }

  forget(key: string): void {
    this.entries.delete(key);
  }

  clear(): void {
    this.entries.clear();
  }

  private evict(): void {
    if (this.entries.size <= this.maxEntries) return;
    const oldest = this.entries.keys().next().value;
    if (oldest !== undefined) this.entries.delete(oldest);
  }
}
