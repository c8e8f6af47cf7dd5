import {
  type BusMessage,
  CLAIM_SHARE,
  type ListedRecord,
  MAX_LISTED_RECORDS,
  OneTimeStore,
  RECORD_SHARE,
  SharedStateUnavailable,
  VALUE_SHARE,
  type VersionedRecord,
  VersionedStore,
} from '../ports/stores.js';
import { parseStoredObject, type RedisConnection, RedisScript } from './redis-connection.js';
import { RedisShares } from './shares.js';

const TAKE = new RedisScript(`return redis.call('GETDEL', KEYS[1])`);

const CLAIM = new RedisScript(`
if redis.call('SET', KEYS[1], '1', 'PX', ARGV[1], 'NX') then return 1 end
return 0`);

/** One-time values for all replicas: a key for each, which expires by itself. */
export class RedisOneTimeStore extends OneTimeStore {
  private readonly values: RedisShares;
  private readonly claims: RedisShares;

  /** @param shares of each owner: it loses its oldest value, and a further claim is refused */
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
    return parseStoredObject(await this.redis.runDurably(TAKE, [this.redis.key('once', key)]));
  }

  async claim(key: string, ttl: number, owner?: string): Promise<boolean> {
    const stored = this.redis.key('claim', key);
    if (owner !== undefined && !(await this.claims.claim(owner, stored, { ttl })))
      throw new SharedStateUnavailable('no room for another claim');
    return (await this.redis.runDurably(CLAIM, [stored], [wholeMilliseconds(ttl)])) === 1;
  }
}

/** Redis accepts whole milliseconds, and at least one. */
function wholeMilliseconds(ttl: number): number {
  return Math.max(1, Math.ceil(ttl));
}

const CREATE = new RedisScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'value', ARGV[1], 'revision', '1', 'owner', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`);

const REPLACE = new RedisScript(`
if redis.call('HGET', KEYS[1], 'revision') ~= ARGV[1] then return false end
redis.call('HSET', KEYS[1], 'value', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'revision', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return { redis.call('HGET', KEYS[1], 'owner') or '' }`);

/** The index of the records that changed last: bounded, and it expires with the last of them. */
const NOTE = new RedisScript(`
local now = redis.call('TIME')
redis.call('ZADD', KEYS[1], now[1] * 1000000 + now[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[3]))
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end`);

/** Versioned records for all replicas: a hash for each, which expires by itself. */
export class RedisVersionedStore extends VersionedStore {
  private readonly shares: RedisShares;

  /** @param kind separates the ids of several stores. @param share of each owner */
  constructor(
    private readonly redis: RedisConnection,
    private readonly kind: string,
    share = RECORD_SHARE,
  ) {
    super();
    this.shares = new RedisShares(redis, kind, share);
  }

  async create(id: string, value: BusMessage, ttl: number, owner?: string): Promise<boolean> {
    const text = JSON.stringify(value);
    if (
      owner !== undefined &&
      !(await this.shares.claim(owner, this.key(id), { ttl, weight: countBytes(text) }))
    )
      throw new SharedStateUnavailable('no room for another record');
    const created = (await this.run(CREATE, id, [text, Math.ceil(ttl), owner ?? ''])) === 1;
    if (created) await this.note(id, ttl);
    return created;
  }

  async find(id: string): Promise<VersionedRecord | undefined> {
    const key = this.key(id);
    const [stored, held] = await this.redis.send((redis) => redis.hmget(key, 'value', 'revision'));
    const value = parseStoredObject(stored);
    const revision = Number(held ?? Number.NaN);
    return value && Number.isSafeInteger(revision) ? { value, revision } : undefined;
  }

  async replace(id: string, revision: number, value: BusMessage, ttl: number): Promise<boolean> {
    const text = JSON.stringify(value);
    const replaced = await this.run(REPLACE, id, [String(revision), text, Math.ceil(ttl)]);
    if (!Array.isArray(replaced)) return false;
    const owner = String(replaced[0] ?? '');
    if (owner !== '') await this.shares.take(owner, this.key(id), { ttl, weight: countBytes(text) });
    await this.note(id, ttl);
    return true;
  }

  async remove(id: string): Promise<void> {
    const key = this.key(id);
    const owner = await this.redis.send((redis) => redis.hget(key, 'owner'));
    await this.redis.send((redis) => redis.del(key));
    if (owner) await this.shares.giveBack(owner, key);
  }

  async latest(limit: number): Promise<readonly ListedRecord[]> {
    const last = Math.min(limit, MAX_LISTED_RECORDS) - 1;
    if (last < 0) return [];
    const ids = await this.redis.send((redis) => redis.zrevrange(this.index, 0, last));
    const found = await Promise.all(ids.map(async (id) => ({ id, record: await this.find(id) })));
    return found.flatMap(({ id, record }) => (record ? [{ id, ...record }] : []));
  }

  private get index(): string {
    return this.redis.key('latest', this.kind);
  }

  /** A separate command: the index and the record may be on different nodes of a cluster. */
  private async note(id: string, ttl: number): Promise<void> {
    await this.redis.send((redis) => NOTE.run(redis, [this.index], [id, Math.ceil(ttl), MAX_LISTED_RECORDS]));
  }

  private key(id: string): string {
    return this.redis.key(this.kind, id);
  }

  private run(script: RedisScript, id: string, args: readonly (string | number)[]): Promise<unknown> {
    return this.redis.runDurably(script, [this.key(id)], args);
  }
}

const countBytes = (text: string) => Buffer.byteLength(text);
