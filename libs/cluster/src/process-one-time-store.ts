import { CLAIM_SHARE, VALUE_SHARE } from './shares.js';
import { type Clock, ExpiringMap, MAX_STORED_BYTES, processClock } from './expiring-map.js';
import type { BusMessage } from './message-bus.js';
import { OneTimeStore } from './one-time-store.js';
import { SharedStateUnavailable } from './shared-state-unavailable.js';

/** One-time values in this process's memory: they serve one process only. */
export class ProcessOneTimeStore extends OneTimeStore {
  private readonly values: ExpiringMap<string>;
  private readonly claims: ExpiringMap<true>;

  /**
   * @param maxEntries values, and separately claims, held at once. The oldest value gives way to a new one; a claim never
   * does, because whoever was first would be first again: without room, claiming fails. Default 100,000
   * @param maxBytes of all values; here too the oldest gives way. Default 64 MiB
   * @param shares of each owner: it loses its oldest value, and is refused another claim
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
