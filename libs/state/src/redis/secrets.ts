import { randomBytes } from 'node:crypto';
import { SECRET_SIZE, SharedSecrets } from '../ports/shared-state.js';
import { SharedStateUnavailable } from '../ports/stores.js';
import type { CheckedRedis, RedisConnection } from './redis-connection.js';

/** The secret of that name, which the first that asks makes. @throws SharedStateUnavailable */
export async function readSecret(redis: CheckedRedis, name: string): Promise<Buffer> {
  const offered = randomBytes(SECRET_SIZE).toString('base64url');
  const stored = await readOrStore(redis, redis.key('secret', name), offered);
  const secret = Buffer.from(stored ?? '', 'base64url');
  if (secret.length !== SECRET_SIZE)
    throw new SharedStateUnavailable(new Error('no usable secret is stored'));
  return secret;
}

/** What a key holds; of several that find nothing at once, one stores its text. A Redis that is full is still read. */
export async function readOrStore(redis: CheckedRedis, key: string, offered: string): Promise<string | null> {
  const kept = await redis.send((client) => client.get(key));
  if (kept !== null) return kept;
  await redis.send((client) => client.set(key, offered, 'NX'));
  return redis.send((client) => client.get(key));
}

/** Secrets stored in Redis without expiry: every client that may read that Redis may read them. */
export class RedisSecrets extends SharedSecrets {
  private readonly known = new Map<string, Buffer>();

  constructor(private readonly redis: RedisConnection) {
    super();
    // A Redis that lost its secrets lost its claims as well: values sealed before must not be accepted again.
    redis.onReturn(() => this.known.clear());
  }

  async secret(name: string): Promise<Buffer> {
    const known = this.known.get(name);
    if (known) return known;
    const secret = await readSecret(this.redis, name);
    this.known.set(name, secret);
    return secret;
  }
}
