import type { BusMessage } from '../message-bus.js';
import { OneTimeStore } from '../one-time-store.js';
import { CLAIM_SHARE, VALUE_SHARE } from '../shares.js';
import { SharedStateUnavailable } from '../shared-state-unavailable.js';
import type { RedisConnection } from './redis-connection.js';
import { RedisShares } from './redis-shares.js';
import { parseStoredObject } from './stored-json.js';

/** One-time values for all replicas: a key for each, which ends by itself. */
export class RedisOneTimeStore extends OneTimeStore {
  private readonly values: RedisShares;
  private readonly claims: RedisShares;

  /** @param shares of each owner: it loses its oldest value, and is refused another claim */
  constructor(
    private readonly redis: RedisConnection,
    shares = { values: VALUE_SHARE, claims: CLAIM_SHARE },
  ) {
    super();
    this.values = new RedisShares(redis, 'once', shares.values);
    this.claims = new RedisShares(redis, 'claim', shares.claims);
  }

  async keep(key: string, value: BusMessage, ttl: number, owner?: string): Promise<void> {
    const stored = this.redis.key('once', key);
    const text = JSON.stringify(value);
    await this.redis.send((redis) => redis.set(stored, text, 'PX', wholeMilliseconds(ttl)));
    if (owner !== undefined) await this.values.take(owner, stored, { ttl, weight: Buffer.byteLength(text) });
  }

  async take(key: string): Promise<BusMessage | undefined> {
    return parseStoredObject(await this.redis.send((redis) => redis.getdel(this.redis.key('once', key))));
  }

  async claim(key: string, ttl: number, owner?: string): Promise<boolean> {
    const stored = this.redis.key('claim', key);
    if (owner !== undefined && !(await this.claims.claim(owner, stored, { ttl })))
      throw new SharedStateUnavailable('no room for another claim');
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
