import type { Share } from '../ports/stores.js';

/** Milliseconds; only differences count. */
export type Clock = () => number;

export const processClock: Clock = () => performance.now();

interface Entry<V> {
  readonly value: V;
  readonly expires: number;
  readonly weight: number;
  readonly owner: string;
}

/** The entries of one owner, the entry set longest ago first. */
interface Holding {
  readonly keys: Set<string>;
  weight: number;
}

/** Maximum bytes that one store of texts holds, so that the data of callers cannot fill the memory. */
export const MAX_STORED_BYTES = 64 * 1024 * 1024;

export interface EntryCount {
  /** Default 0. */
  readonly weight?: number;
  /** The owner in whose share it is counted. Default: none. */
  readonly owner?: string;
}

const NOBODY = '';

/**
 * A bounded map whose entries expire: the base of the in-process stores. An owner that exceeds its share loses the entries
 * that it set longest ago; when the map is full, the owner that has the most entries loses them.
 */
export class ExpiringMap<V> {
  private readonly entries = new Map<string, Entry<V>>();
  private readonly holdings = new Map<string, Holding>();
  /** No entry expires before this time: until then a search for expired entries is useless. */
  private nextExpiry = -Infinity;
  private weight = 0;

  /**
   * @param maxEntries maximum number of entries, expired ones included until they are found
   * @param maxWeight of all entries together. Default: they weigh nothing
   * @param share of each owner. Default: there are no shares
   */
  constructor(
    private readonly maxEntries: number,
    private readonly now: Clock,
    private readonly maxWeight = Infinity,
    private readonly share: Share = {},
  ) {
    if (!Number.isSafeInteger(maxEntries) || maxEntries < 1)
      throw new TypeError('the size of a store must be a positive integer');
  }

  /** Number of entries, expired ones included until they are found. */
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

  /**
   * Removes entries when there is no space: first of the owner beyond its share, then of the owner that has most. An entry
   * that exceeds the limit by itself is kept alone.
   */
  set(key: string, value: V, ttl: number, count: EntryCount = {}): void {
    this.delete(key);
    this.makeRoom(count, { entries: 1, weight: count.weight ?? 0 });
    this.put(key, value, ttl, count);
  }

  /** Removes no other entry: the caller has called `isFull`, or replaces an existing entry. */
  put(key: string, value: V, ttl: number, { weight = 0, owner = NOBODY }: EntryCount = {}): void {
    this.delete(key);
    const expires = this.now() + ttl;
    this.nextExpiry = Math.min(this.nextExpiry, expires);
    this.weight += weight;
    this.entries.set(key, { value, expires, weight, owner });
    const holding = this.holdings.get(owner) ?? { keys: new Set<string>(), weight: 0 };
    holding.keys.add(key);
    holding.weight += weight;
    this.holdings.set(owner, holding);
  }

  /**
   * Replaces an existing entry in its owner's share: if it grows beyond the share, older entries of its owner are removed.
   */
  change(key: string, value: V, ttl: number, weight = 0): void {
    const owner = this.entries.get(key)?.owner ?? NOBODY;
    this.put(key, value, ttl, { weight, owner });
    if (owner !== NOBODY) this.makeRoom({ owner }, { entries: 0, weight: 0 }, key);
  }

  /** Whether nothing more fits, in total or for this owner, after every expired entry was removed. */
  isFull({ owner = NOBODY, weight = 0 }: EntryCount = {}): boolean {
    if (this.hasRoom() && !this.exceeds(owner, { entries: 1, weight })) return false;
    const now = this.now();
    if (now >= this.nextExpiry) this.forgetExpired(now);
    return !this.hasRoom() || this.exceeds(owner, { entries: 1, weight });
  }

  /** The entries that have not expired, the entry set last first. */
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
    const entry = this.entries.get(key);
    if (!entry) return;
    this.entries.delete(key);
    this.weight -= entry.weight;
    const holding = this.holdings.get(entry.owner);
    if (!holding) return;
    holding.keys.delete(key);
    holding.weight -= entry.weight;
    if (holding.keys.size === 0) this.holdings.delete(entry.owner);
  }

  private hasRoom(): boolean {
    return this.entries.size < this.maxEntries && this.weight < this.maxWeight;
  }

  /** @param more the entry to be added */
  private exceeds(owner: string, more: Required<Share>): boolean {
    const { entries = Infinity, weight = Infinity } = this.share;
    const holding = this.holdings.get(owner);
    if (owner === NOBODY || (!holding && more.entries === 0)) return false;
    return (
      (holding?.keys.size ?? 0) + more.entries > entries || (holding?.weight ?? 0) + more.weight > weight
    );
  }

  private makeRoom({ owner = NOBODY }: EntryCount, more: Required<Share>, kept?: string): void {
    while (this.exceeds(owner, more) && this.dropOldest(owner, kept));
    while (
      this.entries.size + more.entries > this.maxEntries ||
      (this.weight + more.weight > this.maxWeight && this.entries.size > 0)
    ) {
      const byWeight = this.entries.size + more.entries <= this.maxEntries;
      // Entries without an owner are removed for a new entry, and never for one that grows.
      if (!this.dropOldest(this.largest(byWeight, kept === undefined, { owner, more }), kept)) return;
    }
  }

  /** @returns false when the owner has no other entry */
  private dropOldest(owner: string | undefined, kept: string | undefined): boolean {
    const holding = owner === undefined ? undefined : this.holdings.get(owner);
    for (const key of holding?.keys ?? []) {
      if (key === kept) continue;
      this.delete(key);
      return true;
    }
    return false;
  }

  /** The owner that has most, the new entry included: with equal counts, the owner of the new entry. */
  private largest(
    byWeight: boolean,
    orNobody: boolean,
    coming: { readonly owner: string; readonly more: Required<Share> },
  ): string | undefined {
    let most = -1;
    let found: string | undefined;
    for (const [owner, { keys, weight }] of this.holdings) {
      if (owner === NOBODY && !orNobody) continue;
      const more = owner === coming.owner ? coming.more : { entries: 0, weight: 0 };
      const has = byWeight ? weight + more.weight : keys.size + more.entries;
      if (has > most) [most, found] = [has, owner];
    }
    return found;
  }

  private forgetExpired(now: number): void {
    this.nextExpiry = Infinity;
    for (const [key, { expires }] of this.entries) {
      if (expires <= now) this.delete(key);
      else this.nextExpiry = Math.min(this.nextExpiry, expires);
    }
  }
}
