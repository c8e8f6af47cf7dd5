import { type RateLimit, RateLimiters, type RateUsage, type RateVerdict, SlidingRateLimiter } from '#agent';
import type { RedisConnection } from './redis-connection.js';
import { RedisScript } from './redis-script.js';

/**
 * A list of the times of permitted calls, at most as many as are permitted; in microseconds of the server, so that replicas
 * need no common clock. The call that is `limit` calls back decides: a new one is permitted once it left the window.
 * Returns the microseconds to wait, or -1.
 */
const CHECK = new RedisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local deciding = redis.call('LINDEX', KEYS[1], '-' .. ARGV[1])
if deciding and tonumber(deciding) + ARGV[2] > now then return tonumber(deciding) + ARGV[2] - now end
redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
redis.call('LTRIM', KEYS[1], '-' .. ARGV[1], -1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return -1`);

/** How many calls count, and how long the deciding one still does, or -1. The times rise, so the first that counts is found by halving. */
const USAGE = new RedisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local length = redis.call('LLEN', KEYS[1])
local low, high = 0, length
while low < high do
  local middle = math.floor((low + high) / 2)
  if tonumber(redis.call('LINDEX', KEYS[1], middle)) + ARGV[2] > now then high = middle else low = middle + 1 end
end
local used = length - low
if used < tonumber(ARGV[1]) then return { used, -1 } end
return { used, redis.call('LINDEX', KEYS[1], '-' .. ARGV[1]) + ARGV[2] - now }`);

const MICROSECONDS = 1_000_000;

class RedisRateLimiter extends SlidingRateLimiter {
  constructor(
    private readonly redis: RedisConnection,
    private readonly name: string,
    rate: RateLimit,
  ) {
    super(rate);
  }

  async check(key: string): Promise<RateVerdict | null> {
    const wait = Number(await this.run(CHECK, key));
    return wait < 0 ? null : this.refusal(wait / MICROSECONDS);
  }

  async usage(key: string): Promise<RateUsage> {
    const [used = 0, wait = -1] = ((await this.run(USAGE, key)) as unknown[]).map(Number);
    return this.usageOf(used, wait < 0 ? null : wait / MICROSECONDS);
  }

  async reset(key: string): Promise<void> {
    await this.redis.send((redis) => redis.del(this.keyOf(key)));
  }

  private run(script: RedisScript, key: string): Promise<unknown> {
    const { limit, window } = this.rate;
    const args = [limit, Math.ceil(window * MICROSECONDS), Math.ceil(window * 1000)];
    return this.redis.send((redis) => script.run(redis, [this.keyOf(key)], args));
  }

  /** The rate belongs to the name: one that was changed starts a count of its own. */
  private keyOf(key: string): string {
    const { limit, window } = this.rate;
    return this.redis.key('rate', JSON.stringify([this.name, limit, window, key]));
  }
}

/** Limits that all replicas count together. They fail when Redis is away: whoever asks refuses. */
export class RedisRateLimiters extends RateLimiters {
  constructor(private readonly redis: RedisConnection) {
    super();
  }

  limiter(name: string, rate: RateLimit): SlidingRateLimiter {
    return new RedisRateLimiter(this.redis, name, rate);
  }
}
