import { hash } from 'node:crypto';
import type { Redis } from 'ioredis';

/** A Lua script: several commands that nothing can come between, in one round trip. */
export class RedisScript {
  private readonly digest: string;

  constructor(private readonly lua: string) {
    this.digest = hash('sha1', lua, 'hex');
  }

  /** Redis knows a script by its digest after the first time; one that was started anew is told again. */
  async run(
    redis: Redis,
    keys: readonly string[],
    args: readonly (string | number)[] = [],
  ): Promise<unknown> {
    try {
      return await redis.evalsha(this.digest, keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return redis.eval(this.lua, keys.length, ...keys, ...args);
    }
  }
}
