import { CLAIM_SHARE, RECORD_SHARE, SharedStateUnavailable, VALUE_SHARE } from '../ports/bounds.js';
import type { BusMessage } from '../ports/message-bus.js';
import {
  type ListedRecord,
  MAX_LISTED_RECORDS,
  OneTimeStore,
  type VersionedRecord,
  VersionedStore,
} from '../ports/stores.js';
import { type Clock, ExpiringMap, MAX_STORED_BYTES, processClock } from './expiring-map.js';

/** One-time values in this process's memory: they serve one process only. */
export class ProcessOneTimeStore extends OneTimeStore {
  private readonly values: ExpiringMap<string>;
  private readonly claims: ExpiringMap<true>;

  /**
   * @param maxEntries values, and separately claims, stored at once. A new value replaces the oldest; a claim is never
   * removed, because a second caller could then claim it: without space, claiming fails. Default 100,000
   * @param maxBytes of all values; the oldest is removed. Default 64 MiB
   * @param shares of each owner: it loses its oldest value, and a further claim is refused
   */
  constructor(
    maxEntries = 100_000,
    now: Clock = processClock,
    maxBytes = MAX_STORED_BYTES,
    shares = { values: VALUE_SHARE, claims: CLAIM_SHARE },
  ) {
    super();
    this.values = new ExpiringMap(maxEntries, now, maxBytes, shares.values);
    this.claims = new ExpiringMap(maxEntries, now, Infinity, shares.claims);
  }

  keep(key: string, value: BusMessage, ttl: number, owner?: string): Promise<void> {
    const text = JSON.stringify(value);
    this.values.set(key, text, ttl, {
      weight: Buffer.byteLength(text),
      ...(owner !== undefined && { owner }),
    });
    return Promise.resolve();
  }

  take(key: string): Promise<BusMessage | undefined> {
    const text = this.values.get(key);
    this.values.delete(key);
    return Promise.resolve(text === undefined ? undefined : (JSON.parse(text) as BusMessage));
  }

  claim(key: string, ttl: number, owner?: string): Promise<boolean> {
    const count = owner === undefined ? {} : { owner };
    if (this.claims.get(key)) return Promise.resolve(false);
    if (this.claims.isFull(count))
      return Promise.reject(new SharedStateUnavailable('no room for another claim'));
    this.claims.put(key, true, ttl, count);
    return Promise.resolve(true);
  }
}

interface Held {
  readonly text: string;
  readonly revision: number;
}

/** Versioned records in this process's memory: they serve one process only. */
export class ProcessVersionedStore extends VersionedStore {
  private readonly records: ExpiringMap<Held>;

  /**
   * @param maxEntries records stored at once; a record is never removed for another: without space, creating fails. Default
   * 10,000
   * @param maxBytes limit for new records; changes of existing records still fit. Default 64 MiB
   * @param share of each owner: a further creation fails; when one of its records grows, its oldest is removed
   */
  constructor(
    maxEntries = 10_000,
    now: Clock = processClock,
    maxBytes = MAX_STORED_BYTES,
    share = RECORD_SHARE,
  ) {
    super();
    this.records = new ExpiringMap(maxEntries, now, maxBytes, share);
  }

  create(id: string, value: BusMessage, ttl: number, owner?: string): Promise<boolean> {
    if (this.records.get(id)) return Promise.resolve(false);
    const text = JSON.stringify(value);
    const count = { weight: Buffer.byteLength(text), ...(owner !== undefined && { owner }) };
    if (this.records.isFull(count))
      return Promise.reject(new SharedStateUnavailable('no room for another record'));
    this.records.put(id, { text, revision: 1 }, ttl, count);
    return Promise.resolve(true);
  }

  find(id: string): Promise<VersionedRecord | undefined> {
    const held = this.records.get(id);
    return Promise.resolve(held && recordOf(held));
  }

  replace(id: string, revision: number, value: BusMessage, ttl: number): Promise<boolean> {
    if (this.records.get(id)?.revision !== revision) return Promise.resolve(false);
    const text = JSON.stringify(value);
    this.records.change(id, { text, revision: revision + 1 }, ttl, Buffer.byteLength(text));
    return Promise.resolve(true);
  }

  remove(id: string): Promise<void> {
    this.records.delete(id);
    return Promise.resolve();
  }

  latest(limit: number): Promise<readonly ListedRecord[]> {
    const found = this.records.latest(Math.min(limit, MAX_LISTED_RECORDS));
    return Promise.resolve(found.map(([id, held]) => ({ id, ...recordOf(held) })));
  }
}

function recordOf({ text, revision }: Held): VersionedRecord {
  return { value: JSON.parse(text) as BusMessage, revision };
}
