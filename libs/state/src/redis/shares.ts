import type { Share } from '../ports/stores.js';
import { type RedisConnection, RedisScript } from './redis-connection.js';

/**
 * KEYS: an owner's members by their expiry, their weights (`#` is their sum). ARGV: member, weight, ttl, entries, weight of
 * the share, 1 to refuse instead of removing older ones. Returns the removed members, or false for a refusal.
 */
const TAKE = new RedisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local member, weight, ttl = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local entries, most = tonumber(ARGV[4]), tonumber(ARGV[5])
local function drop(one)
  local had = tonumber(redis.call('HGET', KEYS[2], one) or 0)
  redis.call('ZREM', KEYS[1], one)
  redis.call('HDEL', KEYS[2], one)
  if had ~= 0 then redis.call('HINCRBY', KEYS[2], '#', -had) end
end
for _, one in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 1000)) do drop(one) end
local function exceeds(has)
  local total = tonumber(redis.call('HGET', KEYS[2], '#') or 0)
  return redis.call('ZCARD', KEYS[1]) - has + 1 > entries or (most >= 0 and total + weight > most)
end
local has = redis.call('ZSCORE', KEYS[1], member) and 1 or 0
if ARGV[6] == '1' and has == 0 and exceeds(0) then return false end
if has == 1 then drop(member) end
local gone = {}
while exceeds(0) do
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
  if not oldest then break end
  drop(oldest)
  gone[#gone + 1] = oldest
end
redis.call('ZADD', KEYS[1], now + ttl, member)
if weight > 0 then
  redis.call('HSET', KEYS[2], member, weight)
  redis.call('HINCRBY', KEYS[2], '#', weight)
end
for i = 1, 2 do
  if redis.call('PTTL', KEYS[i]) < ttl then redis.call('PEXPIRE', KEYS[i], ttl) end
end
return gone`);

const GIVE_BACK = new RedisScript(`
local had = tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or 0)
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
if had ~= 0 then redis.call('HINCRBY', KEYS[2], '#', -had) end
return 1`);

/** The weight of a key in the share. */
interface Counted {
  /** Milliseconds that the key lives. */
  readonly ttl: number;
  /** Default 0. */
  readonly weight?: number;
}

/**
 * The keys of a kind by owner, so that each owner's share is limited on all replicas together. The keys themselves may be on
 * other nodes of a cluster: removed members are deleted in a separate step.
 */
export class RedisShares {
  constructor(
    private readonly redis: RedisConnection,
    private readonly kind: string,
    private readonly share: Share,
  ) {}

  /**
   * Counts a key, or counts it again, and deletes the keys that the owner set longest ago beyond the share.
   * @returns the deleted ones
   */
  async take(owner: string, key: string, counted: Counted): Promise<readonly string[]> {
    const gone = (await this.run(owner, key, counted, false)) ?? [];
    if (gone.length > 0) await this.redis.send((redis) => Promise.all(gone.map((one) => redis.del(one))));
    return gone;
  }

  /** Counts a key while the share has space. @returns false when it has none, and nothing changed */
  async claim(owner: string, key: string, counted: Counted): Promise<boolean> {
    return (await this.run(owner, key, counted, true)) !== null;
  }

  async giveBack(owner: string, key: string): Promise<void> {
    await this.redis.send((redis) => GIVE_BACK.run(redis, this.keys(owner), [key]));
  }

  private async run(
    owner: string,
    key: string,
    { ttl, weight = 0 }: Counted,
    refuses: boolean,
  ): Promise<readonly string[] | null> {
    const { entries = Number.MAX_SAFE_INTEGER, weight: most = -1 } = this.share;
    const args = [key, weight, Math.max(1, Math.ceil(ttl)), entries, most, refuses ? 1 : 0];
    const reply = await this.redis.send((redis) => TAKE.run(redis, this.keys(owner), args));
    return Array.isArray(reply) ? reply.map(String) : null;
  }

  private keys(owner: string): string[] {
    const name = JSON.stringify([this.kind, owner]);
    return [this.redis.key('share', name), this.redis.key('share', name, 'weights')];
  }
}
