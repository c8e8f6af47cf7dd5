import { STREAM_SHARE } from '../shares.js';
import { type LoggedFrame, STREAM_LOG_LIMITS, StreamLog, type StreamLogLimits } from '../stream-log.js';
import type { RedisConnection } from './redis-connection.js';
import { RedisScript } from './redis-script.js';
import { RedisShares } from './redis-shares.js';

/**
 * Adds a frame, then lets the oldest ones go until number and size fit; the size of a stream is kept beside it. Entries are
 * microseconds of the server, so that a stream forgotten and begun anew repeats none, and rise when its clock does not.
 */
const APPEND = new RedisScript(`
local time = redis.call('TIME')
local stamp = time[1] * 1000000 + time[2]
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if not last then redis.call('DEL', KEYS[2]) end
if last then stamp = math.max(stamp, tonumber(string.match(last[1], '^%d+')) + 1) end
local entry = redis.call('XADD', KEYS[1], string.format('%.0f-0', stamp), 'frame', ARGV[1])
local size = redis.call('INCRBY', KEYS[2], #ARGV[1])
local count = redis.call('XLEN', KEYS[1])
while count > 1 and (count > tonumber(ARGV[2]) or size > tonumber(ARGV[3])) do
  local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  redis.call('XDEL', KEYS[1], oldest[1])
  size = redis.call('DECRBY', KEYS[2], #oldest[2][2])
  count = count - 1
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return { entry, size }`);

const AFTER = new RedisScript(`
if #redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1]) == 0 then return false end
return redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+')`);

/** As Redis writes the entries of a stream; anything else names none. */
const ENTRY = /^\d{1,18}-\d{1,18}$/;

/** Stream frames for all replicas: a Redis stream for each, which ends when nothing was added for its time. */
export class RedisStreamLog extends StreamLog {
  private readonly limits: Required<StreamLogLimits>;
  private readonly shares: RedisShares;

  constructor(
    private readonly redis: RedisConnection,
    limits: StreamLogLimits = {},
    share = STREAM_SHARE,
  ) {
    super();
    this.limits = { ...STREAM_LOG_LIMITS, ...limits };
    this.shares = new RedisShares(redis, 'stream', share);
  }

  async append(stream: string, frame: string, owner?: string): Promise<string> {
    const { maxFrames, maxSize, ttl } = this.limits;
    const reply = await this.run(APPEND, stream, [frame, maxFrames, maxSize, ttl]);
    const [entry, size] = Array.isArray(reply) ? (reply as unknown[]) : [];
    const [key = ''] = this.keys(stream);
    if (owner !== undefined) await this.shares.take(owner, key, { ttl, weight: Number(size) });
    return String(entry);
  }

  async after(stream: string, entry: string): Promise<readonly LoggedFrame[] | undefined> {
    if (!ENTRY.test(entry)) return undefined;
    return readFrames(await this.run(AFTER, stream, [entry]));
  }

  async forget(stream: string): Promise<void> {
    await this.redis.send((redis) => redis.del(...this.keys(stream)));
  }

  private run(script: RedisScript, stream: string, args: readonly (string | number)[]): Promise<unknown> {
    return this.redis.send((redis) => script.run(redis, this.keys(stream), args));
  }

  private keys(stream: string): string[] {
    return [this.redis.key('stream', stream), this.redis.key('stream', stream, 'size')];
  }
}

/** One entry that is none makes the replay a gap. */
function readFrames(reply: unknown): readonly LoggedFrame[] | undefined {
  if (!Array.isArray(reply)) return undefined;
  const frames: LoggedFrame[] = [];
  for (const item of reply as unknown[]) {
    const [entry, fields] = Array.isArray(item) ? (item as unknown[]) : [];
    const [name, frame] = Array.isArray(fields) ? (fields as unknown[]) : [];
    if (typeof entry !== 'string' || name !== 'frame' || typeof frame !== 'string') return undefined;
    frames.push({ entry, frame });
  }
  return frames;
}
