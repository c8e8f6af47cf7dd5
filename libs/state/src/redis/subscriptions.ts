import { hash } from 'node:crypto';
import {
  type SubscriptionOutcome,
  type SubscriptionStoreLimits,
  SUBSCRIPTION_TTL,
  SubscriptionStore,
} from '../ports/sessions.js';
import { type RedisConnection, RedisScript } from './redis-connection.js';

const NOW = `local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
`;

/**
 * KEYS: a session's addresses, the index of sessions, unused, the sessions of its owner. ARGV: address, session, per session,
 * sessions, ttl, sessions of the owner or -1. The sessions of the owner are checked only when there may be too many.
 */
const ADD = new RedisScript(`${NOW}
local known = redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1
if not known then
  local count = redis.call('SCARD', KEYS[1])
  if count == 0 then
    redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
    if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then return 'full' end
    local share = tonumber(ARGV[6])
    if share >= 0 then
      if redis.call('SCARD', KEYS[4]) >= share then
        for _, one in ipairs(redis.call('SMEMBERS', KEYS[4])) do
          if not redis.call('ZSCORE', KEYS[2], one) then redis.call('SREM', KEYS[4], one) end
        end
        if redis.call('SCARD', KEYS[4]) >= share then return 'owner-full' end
      end
    end
  elseif count >= tonumber(ARGV[3]) then
    return 'session-full'
  end
  redis.call('SADD', KEYS[1], ARGV[1])
end
if tonumber(ARGV[6]) >= 0 then
  redis.call('SADD', KEYS[4], ARGV[2])
  redis.call('PEXPIRE', KEYS[4], ARGV[5] * 24)
end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('ZADD', KEYS[2], now + ARGV[5], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return known and 'present' or 'added'`);

const REMOVE = new RedisScript(`
redis.call('SREM', KEYS[1], ARGV[1])
if redis.call('SCARD', KEYS[1]) == 0 then redis.call('ZREM', KEYS[2], ARGV[2]) end
return 1`);

const HOLD = new RedisScript(`
local before = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return before`);

const TOUCH = new RedisScript(`${NOW}
redis.call('PEXPIRE', KEYS[3], ARGV[2])
if redis.call('PEXPIRE', KEYS[1], ARGV[2]) == 0 then return 0 end
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1`);

const FORGET = new RedisScript(`
redis.call('DEL', KEYS[1], KEYS[3])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1`);

/** The subscriptions of all replicas: a set of addresses for each session, and an index that counts the sessions. */
export class RedisSubscriptionStore extends SubscriptionStore {
  constructor(private readonly redis: RedisConnection) {
    super();
  }

  async add(session: string, uri: string, limits: SubscriptionStoreLimits): Promise<SubscriptionOutcome> {
    const { maxPerSession, maxSessions, share } = limits;
    const args = [
      uri,
      digest(session),
      maxPerSession,
      maxSessions,
      SUBSCRIPTION_TTL,
      share?.maxSessions ?? -1,
    ];
    return (await this.run(ADD, session, args, share?.owner)) as SubscriptionOutcome;
  }

  async remove(session: string, uri: string): Promise<void> {
    await this.run(REMOVE, session, [uri, digest(session)]);
  }

  async of(session: string): Promise<readonly string[]> {
    const { uris } = this.keys(session);
    return this.redis.send((redis) => redis.smembers(uris));
  }

  async hold(session: string, replica: string): Promise<string | undefined> {
    const { holder } = this.keys(session);
    const before = await this.redis.send((redis) => HOLD.run(redis, [holder], [replica, SUBSCRIPTION_TTL]));
    return typeof before === 'string' ? before : undefined;
  }

  async holder(session: string): Promise<string | undefined> {
    const { holder } = this.keys(session);
    return (await this.redis.send((redis) => redis.get(holder))) ?? undefined;
  }

  async touch(sessions: readonly string[]): Promise<void> {
    for (const session of sessions) await this.run(TOUCH, session, [digest(session), SUBSCRIPTION_TTL]);
  }

  async forget(session: string): Promise<void> {
    await this.run(FORGET, session, [digest(session)]);
  }

  private run(
    script: RedisScript,
    session: string,
    args: readonly (string | number)[],
    owner = '',
  ): Promise<unknown> {
    const { uris, index, holder } = this.keys(session);
    const owned = this.redis.key('subscriptions', 'book', `${digest(owner)}:owned`);
    return this.redis.send((redis) => script.run(redis, [uris, index, holder, owned], args));
  }

  /** All keys are on one node of a cluster: they change together. */
  private keys(session: string): { uris: string; index: string; holder: string } {
    const of = digest(session);
    return {
      uris: this.redis.key('subscriptions', 'book', `${of}:uris`),
      holder: this.redis.key('subscriptions', 'book', `${of}:holder`),
      index: this.redis.key('subscriptions', 'book', 'sessions'),
    };
  }
}

/** A short and harmless key, whatever the caller chose. */
function digest(session: string): string {
  return hash('sha256', session, 'base64url');
}
