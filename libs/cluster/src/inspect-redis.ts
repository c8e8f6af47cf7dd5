/** What an operator should know of the Redis that is configured. */
export interface RedisFacts {
  readonly version: string;
  /** Whether what it holds outlives it: every write, from time to time, not at all; null: it does not say. */
  readonly persistence: 'append-only file' | 'snapshots' | 'none' | null;
  /** What it does when its memory is full, such as `noeviction`; null: it does not say. */
  readonly eviction: string | null;
  /** Bytes it may use; 0: all there are. */
  readonly maxMemory: number;
  /** Milliseconds that its clock is ahead of ours, to within the time of the answer. */
  readonly clockAhead: number;
}

/**
 * Asks Redis about itself; the client is loaded only here.
 * @throws SharedStateUnavailable when it does not answer; TypeError when the URL cannot be read, which is not repeated
 */
export async function inspectRedis(url: string): Promise<RedisFacts> {
  const { readRedisFacts } = await import('./redis/read-redis-facts.js');
  return readRedisFacts(url);
}
