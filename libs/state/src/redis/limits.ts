import {
  BUDGET_STEPS,
  BudgetStore,
  type BudgetVerdict,
  type DataBudget,
  type DataUse,
  denyExhausted,
  QUANTITIES,
  type RateLimit,
  RateLimiters,
  type RateUsage,
  type RateVerdict,
  SlidingRateLimiter,
} from '#core';
import { SharedStateUnavailable } from '../ports/stores.js';
import { type RedisConnection, RedisScript } from './redis-connection.js';

/**
 * A hash for each account: `step:quantity` → used, in steps of the server's clock. Steps that have left the window are
 * removed during each call; steps ahead of a clock that was set back count as used now. ARGV: step in milliseconds, steps of a window.
 */
const READ = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local length, count = tonumber(ARGV[1]), tonumber(ARGV[2])
local current = math.floor(now / length)
local fields = redis.call('HGETALL', KEYS[1])
local sums, steps = { 0, 0, 0, 0 }, {}
for i = 1, #fields, 2 do
  local step, quantity = string.match(fields[i], '^(%d+):([1-4])$')
  step, quantity = tonumber(step), tonumber(quantity)
  if not step or step < current - count then
    redis.call('HDEL', KEYS[1], fields[i])
  else
    if step > current then
      redis.call('HDEL', KEYS[1], fields[i])
      redis.call('HINCRBY', KEYS[1], string.format('%.0f:%d', current, quantity), fields[i + 1])
      step = current
    end
    sums[quantity] = sums[quantity] + tonumber(fields[i + 1])
    steps[#steps + 1] = { step, quantity, tonumber(fields[i + 1]) }
  end
end
`;

const ADD = `
local function add(quantity, amount)
  if amount > 0 then redis.call('HINCRBY', KEYS[1], string.format('%.0f:%d', current, quantity), amount) end
  redis.call('PEXPIRE', KEYS[1], math.ceil(length * (count + 1)))
end
`;

/**
 * ARGV from 3: the limits, -1 for none; then 1 to count a call. Returns the exhausted quantity and the milliseconds until
 * some of it is available.
 */
const ADMIT = new RedisScript(`${READ}${ADD}
table.sort(steps, function(a, b) return a[1] < b[1] end)
local which, longest = 0, -1
for quantity = 1, 4 do
  local limit, counted = tonumber(ARGV[2 + quantity]), sums[quantity]
  if limit >= 0 and counted >= limit then
    for _, use in ipairs(steps) do
      if use[2] == quantity then
        counted = counted - use[3]
        local wait = (use[1] + 1) * length + count * length - now
        if counted < limit then
          if wait > longest then which, longest = quantity, wait end
          break
        end
      end
    end
  end
end
if which == 0 and ARGV[7] == '1' then add(1, 1) end
return { which, math.ceil(longest) }`);

/** ARGV from 3: the quantities used. */
const CHARGE = new RedisScript(`${READ}${ADD}
for quantity = 1, 4 do add(quantity, tonumber(ARGV[2 + quantity])) end
return 1`);

const READ_USED = new RedisScript(`${READ}
return sums`);

/** What accounts used on all replicas together. */
export class RedisBudgetStore extends BudgetStore {
  constructor(private readonly redis: RedisConnection) {
    super();
  }

  async admit(account: string, budget: DataBudget, counts = true): Promise<BudgetVerdict | null> {
    const isCounted = (quantity: (typeof QUANTITIES)[number]) => counts || quantity !== 'calls';
    const limits = QUANTITIES.map(
      (quantity) => (isCounted(quantity) ? budget.limits[quantity] : undefined) ?? -1,
    );
    const [which = 0, wait = 0] = await this.run(ADMIT, account, budget, [...limits, counts ? 1 : 0]);
    const quantity = QUANTITIES[which - 1];
    return quantity ? denyExhausted(budget, quantity, wait / 1000) : null;
  }

  async charge(account: string, budget: DataBudget, use: Partial<DataUse>): Promise<void> {
    const amounts = QUANTITIES.map((quantity) => Math.ceil(use[quantity] ?? 0));
    await this.redis.send((redis) =>
      CHARGE.run(redis, this.keys(account, budget), this.args(budget, amounts)),
    );
  }

  async readUse(account: string, budget: DataBudget): Promise<DataUse> {
    const [calls = 0, rows = 0, bytes = 0, databaseTime = 0] = await this.run(READ_USED, account, budget, []);
    return { calls, rows, bytes, databaseTime };
  }

  private async run(
    script: RedisScript,
    account: string,
    budget: DataBudget,
    args: readonly number[],
  ): Promise<number[]> {
    const reply = await this.redis.send((redis) =>
      script.run(redis, this.keys(account, budget), this.args(budget, args)),
    );
    const numbers = Array.isArray(reply) ? (reply as unknown[]).map(Number) : [];
    // Any other value is an invalid answer, and without an answer the call is not admitted.
    if (numbers.length < 2 || numbers.some((number) => !Number.isSafeInteger(number)))
      throw new SharedStateUnavailable('an account could not be read');
    return numbers;
  }

  /** Each account has its own window: after a change of its length, counting starts again. */
  private keys(account: string, { window }: DataBudget): string[] {
    return [this.redis.key('budget', JSON.stringify([account, window]))];
  }

  private args({ window }: DataBudget, rest: readonly number[]): number[] {
    return [(window * 1000) / BUDGET_STEPS, BUDGET_STEPS, ...rest];
  }
}

/**
 * A list of the times of permitted calls, at most as many as are permitted; in microseconds of the server, so that replicas
 * need no common clock. The call `limit` positions back decides: a new call is permitted once it has left the window. Times
 * ahead of a clock that was set back are moved until the latest is now: nobody waits longer than a window. Returns the
 * microseconds to wait, or -1.
 */
const CHECK = new RedisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local latest = tonumber(redis.call('LINDEX', KEYS[1], -1) or 0)
if latest > now then
  local times = redis.call('LRANGE', KEYS[1], 0, -1)
  redis.call('DEL', KEYS[1])
  for _, one in ipairs(times) do redis.call('RPUSH', KEYS[1], string.format('%.0f', tonumber(one) - latest + now)) end
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
local deciding = redis.call('LINDEX', KEYS[1], '-' .. ARGV[1])
if deciding and tonumber(deciding) + ARGV[2] > now then return tonumber(deciding) + ARGV[2] - now end
redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
redis.call('LTRIM', KEYS[1], '-' .. ARGV[1], -1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return -1`);

/**
 * How many calls count, and for how long the deciding one still does, or -1. The times increase, so a binary search finds the
 * first that counts.
 */
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
return { used, math.min(redis.call('LINDEX', KEYS[1], '-' .. ARGV[1]) + ARGV[2] - now, ARGV[2]) }`);

const MICROSECONDS_PER_SECOND = 1_000_000;

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
    return wait < 0 ? null : this.refusal(wait / MICROSECONDS_PER_SECOND);
  }

  async usage(key: string): Promise<RateUsage> {
    const [used = 0, wait = -1] = ((await this.run(USAGE, key)) as unknown[]).map(Number);
    return this.toUsage(used, wait < 0 ? null : wait / MICROSECONDS_PER_SECOND);
  }

  async reset(key: string): Promise<void> {
    await this.redis.send((redis) => redis.del(this.toKey(key)));
  }

  private run(script: RedisScript, key: string): Promise<unknown> {
    const { limit, window } = this.rate;
    const args = [limit, Math.ceil(window * MICROSECONDS_PER_SECOND), Math.ceil(window * 1000)];
    return this.redis.send((redis) => script.run(redis, [this.toKey(key)], args));
  }

  /** The rate is part of the name: after a change of the rate, a new count starts. */
  private toKey(key: string): string {
    const { limit, window } = this.rate;
    return this.redis.key('rate', JSON.stringify([this.name, limit, window, key]));
  }
}

/** Limits that all replicas count together. They fail when Redis is unavailable: the caller then refuses. */
export class RedisRateLimiters extends RateLimiters {
  constructor(private readonly redis: RedisConnection) {
    super();
  }

  limiter(name: string, rate: RateLimit): SlidingRateLimiter {
    return new RedisRateLimiter(this.redis, name, rate);
  }
}
