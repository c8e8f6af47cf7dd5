import type { ConfigFault } from './config-faults.js';

/** What a pattern cannot say of `redis.url`. It may hold a password, so no fault repeats it. */
export function redisFaults(config: unknown): ConfigFault[] {
  const { redis } = (config ?? {}) as { redis?: { url?: unknown } | null };
  const url = redis?.url;
  if (typeof url !== 'string' || URL.canParse(url)) return [];
  return [{ path: 'redis.url', message: 'must be a URL: redis://host:port or rediss://host:port' }];
}
