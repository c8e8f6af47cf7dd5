import { randomBytes } from 'node:crypto';
import { SECRET_SIZE, SharedSecrets } from '../shared-secrets.js';
import { SharedStateUnavailable } from '../shared-state-unavailable.js';
import type { RedisConnection } from './redis-connection.js';

/** Secrets kept in Redis for good: whoever may read that Redis may read them. */
export class RedisSecrets extends SharedSecrets {
  private readonly known = new Map<string, Buffer>();

  constructor(private readonly redis: RedisConnection) {
    super();
    // A Redis that lost its secrets lost its claims as well: what was sealed before must not be honoured again.
    redis.onReturn(() => this.known.clear());
  }

  async secret(name: string): Promise<Buffer> {
    const known = this.known.get(name);
    if (known) return known;
    const key = this.redis.key('secret', name);
    const offered = randomBytes(SECRET_SIZE).toString('base64url');
    await this.redis.send((redis) => redis.set(key, offered, 'NX'));
    const stored = await this.redis.send((redis) => redis.get(key));
    const secret = Buffer.from(stored ?? '', 'base64url');
    if (secret.length !== SECRET_SIZE)
      throw new SharedStateUnavailable(new Error('no usable secret is stored'));
    this.known.set(name, secret);
    return secret;
  }
}
