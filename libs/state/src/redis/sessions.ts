import { randomUUID } from 'node:crypto';
import { SESSION_SHARE, STREAM_SHARE } from '../ports/stores.js';
import {
  type LoggedFrame,
  type Session,
  SESSION_TTL,
  type SessionDraft,
  SessionStore,
  STREAM_LOG_LIMITS,
  StreamLog,
  type StreamLogLimits,
} from '../ports/sessions.js';
import { parseStoredObject, type RedisConnection, RedisScript } from './redis-connection.js';
import { RedisShares } from './shares.js';

/** Writes the session unless the key holds another principal's session or an ended one. */
const CREATE = new RedisScript(`
local held = redis.call('HMGET', KEYS[1], 'owner', 'terminated')
if held[1] and (held[1] ~= ARGV[1] or held[2] ~= '0') then return 0 end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'version', ARGV[2], 'capabilities', ARGV[3], 'logLevel', ARGV[4],
  'terminated', '0', 'counted', redis.call('TIME')[1])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1`);

const FIND = new RedisScript(`
local held = redis.call('HMGET', KEYS[1], 'owner', 'version', 'capabilities', 'terminated', 'logLevel', 'counted')
if not held[1] then return held end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
local now = tonumber(redis.call('TIME')[1])
if now - tonumber(held[6] or 0) < tonumber(ARGV[2]) then return { held[1], held[2], held[3], held[4], held[5], 0 } end
redis.call('HSET', KEYS[1], 'counted', now)
return { held[1], held[2], held[3], held[4], held[5], 1 }`);

const TERMINATE = new RedisScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'capabilities', '{}', 'terminated', '1')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1`);

/** KEYS: the sessions of all principals by their expiry. ARGV: a session, its ttl, others that are gone. */
const INDEX = new RedisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
for i = 3, #ARGV do redis.call('ZREM', KEYS[1], ARGV[i]) end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`);

const COUNT = new RedisScript(`
local time = redis.call('TIME')
return redis.call('ZCOUNT', KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000), '+inf')`);

/** Seconds after which the use of a session is recorded again: a request in between needs one command. */
const COUNTED_EVERY = 60;

/** Sessions for all replicas: one hash for each, which expires when it was not used for its time to live. */
export class RedisSessionStore extends SessionStore {
  private readonly shares: RedisShares;

  /**
   * @param ttl milliseconds without use. Default 24 hours. @param share of each principal, whose longest unused session is
   * removed
   */
  constructor(
    private readonly redis: RedisConnection,
    private readonly ttl = SESSION_TTL,
    share = SESSION_SHARE,
  ) {
    super();
    this.shares = new RedisShares(redis, 'session', share);
  }

  async create({ proposedId, ...draft }: SessionDraft): Promise<string> {
    if (proposedId !== undefined && (await this.open(proposedId, draft))) return proposedId;
    for (;;) {
      const id = randomUUID();
      if (await this.open(id, draft)) return id;
    }
  }

  async find(id: string): Promise<Session | undefined> {
    const reply = await this.run(FIND, id, [this.ttl, COUNTED_EVERY]);
    const session = readSession(reply);
    if (session && Array.isArray(reply) && reply[5] === 1)
      await this.countUse(session.owner, id, session.terminated);
    return session;
  }

  async terminate(id: string): Promise<void> {
    await this.run(TERMINATE, id, [this.ttl]);
    await this.redis.send((redis) => redis.zrem(this.index, this.redis.key('session', id)));
  }

  async count(): Promise<number> {
    return Number(await this.redis.send((redis) => COUNT.run(redis, [this.index], [])));
  }

  /** One key for all of them, apart from those of the principals: they may be on other nodes of a cluster. */
  private get index(): string {
    return this.redis.key('open', 'sessions');
  }

  private async open(id: string, draft: Omit<SessionDraft, 'proposedId'>) {
    const { owner, version, capabilities, logLevel = '' } = draft;
    const fields = [owner, version, JSON.stringify(capabilities), logLevel, this.ttl];
    if ((await this.run(CREATE, id, fields)) !== 1) return false;
    await this.countUse(owner, id);
    return true;
  }

  /** A principal that has more than its share loses the session that it used longest ago. */
  private async countUse(owner: string, id: string, terminated = false): Promise<void> {
    const key = this.redis.key('session', id);
    const gone = await this.shares.take(owner, key, { ttl: this.ttl });
    if (!terminated)
      await this.redis.send((redis) => INDEX.run(redis, [this.index], [key, this.ttl, ...gone]));
  }

  private run(script: RedisScript, id: string, args: readonly (string | number)[]): Promise<unknown> {
    return this.redis.send((redis) => script.run(redis, [this.redis.key('session', id)], args));
  }
}

/** Data that is not a session has no owner: its id grants nothing. */
function readSession(reply: unknown): Session | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [owner, version, stored, terminated, logLevel] = reply as unknown[];
  const capabilities = parseStoredObject(stored);
  if (typeof owner !== 'string' || typeof version !== 'string' || !capabilities) return undefined;
  if (terminated !== '0' && terminated !== '1') return undefined;
  const wanted = typeof logLevel === 'string' && logLevel !== '' ? { logLevel } : {};
  return { owner, version, capabilities, ...wanted, terminated: terminated === '1' };
}

/**
 * Adds a frame, then removes the oldest frames until number and size fit; the size of a stream is stored beside it. Entries
 * are microseconds of the server, so that a stream that was removed and begun again repeats none, and increase when its clock
 * does not.
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

const READ_AFTER = new RedisScript(`
if #redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1]) == 0 then return false end
return redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+')`);

/** The form in which Redis writes the entries of a stream; other text identifies none. */
const ENTRY = /^\d{1,18}-\d{1,18}$/;

/** Stream frames for all replicas: a Redis stream for each, which expires when nothing was added for its time to live. */
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
    return readFrames(await this.run(READ_AFTER, stream, [entry]));
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

/** One invalid entry makes the replay a gap. */
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
