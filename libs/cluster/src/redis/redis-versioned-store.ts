import type { BusMessage } from '../message-bus.js';
import { type VersionedRecord, VersionedStore } from '../versioned-store.js';
import type { RedisConnection } from './redis-connection.js';
import { RedisScript } from './redis-script.js';
import { parseStoredObject } from './stored-json.js';

const CREATE = new RedisScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'value', ARGV[1], 'revision', '1')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`);

const REPLACE = new RedisScript(`
if redis.call('HGET', KEYS[1], 'revision') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'value', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'revision', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`);

/** Versioned records for all replicas: a hash for each, which ends by itself. */
export class RedisVersionedStore extends VersionedStore {
  /** @param kind keeps the ids of several stores apart */
  constructor(
    private readonly redis: RedisConnection,
    private readonly kind: string,
  ) {
    super();
  }

  async create(id: string, value: BusMessage, ttl: number): Promise<boolean> {
    return (await this.run(CREATE, id, [JSON.stringify(value), Math.ceil(ttl)])) === 1;
  }

  async find(id: string): Promise<VersionedRecord | undefined> {
    const key = this.key(id);
    const [stored, held] = await this.redis.send((redis) => redis.hmget(key, 'value', 'revision'));
    const value = parseStoredObject(stored);
    const revision = Number(held ?? Number.NaN);
    return value && Number.isSafeInteger(revision) ? { value, revision } : undefined;
  }

  async replace(id: string, revision: number, value: BusMessage, ttl: number): Promise<boolean> {
    const args = [String(revision), JSON.stringify(value), Math.ceil(ttl)];
    return (await this.run(REPLACE, id, args)) === 1;
  }

  async remove(id: string): Promise<void> {
    await this.redis.send((redis) => redis.del(this.key(id)));
  }

  private key(id: string): string {
    return this.redis.key(this.kind, id);
  }

  private run(script: RedisScript, id: string, args: readonly (string | number)[]): Promise<unknown> {
    return this.redis.send((redis) => script.run(redis, [this.key(id)], args));
  }
}
