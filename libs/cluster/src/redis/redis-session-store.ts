import { randomUUID } from 'node:crypto';
import { SESSION_SHARE } from '../shares.js';
import { type Session, SESSION_TTL, type SessionDraft, SessionStore } from '../session-store.js';
import type { RedisConnection } from './redis-connection.js';
import { RedisScript } from './redis-script.js';
import { RedisShares } from './redis-shares.js';
import { parseStoredObject } from './stored-json.js';

/** Writes the session unless somebody else's, or an ended one, has the key. */
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

/** Seconds after which a session that is used is counted as used anew: a request in between costs one command. */
const COUNTED_EVERY = 60;

/** Sessions for all replicas: one hash for each, which ends when it was not used for its time. */
export class RedisSessionStore extends SessionStore {
  private readonly shares: RedisShares;

  /** @param ttl milliseconds without use. Default 24 hours. @param share of each principal, whose longest unused session gives way */
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
    if (session && Array.isArray(reply) && reply[5] === 1) await this.count(session.owner, id);
    return session;
  }

  async terminate(id: string): Promise<void> {
    await this.run(TERMINATE, id, [this.ttl]);
  }

  private async open(id: string, draft: Omit<SessionDraft, 'proposedId'>) {
    const { owner, version, capabilities, logLevel = '' } = draft;
    const fields = [owner, version, JSON.stringify(capabilities), logLevel, this.ttl];
    if ((await this.run(CREATE, id, fields)) !== 1) return false;
    await this.count(owner, id);
    return true;
  }

  /** A principal that has more than its share loses the session that it used longest ago. */
  private count(owner: string, id: string): Promise<void> {
    return this.shares.take(owner, this.redis.key('session', id), { ttl: this.ttl });
  }

  private run(script: RedisScript, id: string, args: readonly (string | number)[]): Promise<unknown> {
    return this.redis.send((redis) => script.run(redis, [this.redis.key('session', id)], args));
  }
}

/** Anything that is no session is nobody's: its id is a label without power. */
function readSession(reply: unknown): Session | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [owner, version, stored, terminated, logLevel] = reply as unknown[];
  const capabilities = parseStoredObject(stored);
  if (typeof owner !== 'string' || typeof version !== 'string' || !capabilities) return undefined;
  if (terminated !== '0' && terminated !== '1') return undefined;
  const wanted = typeof logLevel === 'string' && logLevel !== '' ? { logLevel } : {};
  return { owner, version, capabilities, ...wanted, terminated: terminated === '1' };
}
