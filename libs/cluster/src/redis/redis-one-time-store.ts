import type { BusMessage } from '../message-bus.js';
import { OneTimeStore } from '../one-time-store.js';
import type { RedisConnection } from './redis-connection.js';
import { parseStoredObject } from './stored-json.js';

/** One-time values for all replicas: a key for each, which ends by itself. */
export class RedisOneTimeStore extends OneTimeStore {
  constructor(private readonly redis: RedisConnection) {
    super();
  }

  async keep(key: string, value: BusMessage, ttl: number): Promise<void> {
    const stored = this.redis.key('once', key);
    await this.redis.send((redis) => redis.set(stored, JSON.stringify(value), 'PX', wholeMilliseconds(ttl)));
  }

  async take(key: string): Promise<BusMessage | undefined> {
    return parseStoredObject(await this.redis.send((redis) => redis.getdel(this.redis.key('once', key))));
  }

  async claim(key: string, ttl: number): Promise<boolean> {
    const stored = this.redis.key('claim', key);
    const reply = await this.redis.send((redis) =>
      redis.set(stored, '1', 'PX', wholeMilliseconds(ttl), 'NX'),
    );
    return reply === 'OK';
  }
}

/** Redis takes whole milliseconds, and at least one. */
function wholeMilliseconds(ttl: number): number {
  return Math.max(1, Math.ceil(ttl));
}
