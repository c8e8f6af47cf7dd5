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
   */
  constructor(maxEntries = 100_000, now: Clock = processClock, maxBytes = MAX_STORED_BYTES) {
    super();
    this.values = new ExpiringMap(maxEntries, now, maxBytes);
    this.claims = new ExpiringMap(maxEntries, now);
  }

  keep(key: string, value: BusMessage, ttl: number): Promise<void> {
    const text = JSON.stringify(value);
    this.values.set(key, text, ttl, Buffer.byteLength(text));
    return Promise.resolve();
  }

  take(key: string): Promise<BusMessage | undefined> {
    const text = this.values.get(key);
    this.values.delete(key);
    return Promise.resolve(text === undefined ? undefined : (JSON.parse(text) as BusMessage));
  }

  claim(key: string, ttl: number): Promise<boolean> {
    if (this.claims.get(key)) return Promise.resolve(false);
    if (this.claims.isFull()) return Promise.reject(new SharedStateUnavailable('no room for another claim'));
    this.claims.put(key, true, ttl);
    return Promise.resolve(true);
  }
}
