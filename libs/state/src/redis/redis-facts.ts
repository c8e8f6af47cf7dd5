import type { RedisFacts } from '../open-shared-state.js';
import { RedisConnection } from './redis-connection.js';

/** Milliseconds that a first connection may take. */
const ANSWER_TIMEOUT = 2_000;

/** `name:value` lines of INFO. */
function readInfo(text: string): Map<string, string> {
  return new Map(
    text.split(/\r?\n/).flatMap((line): [string, string][] => {
      const at = line.indexOf(':');
      return line.startsWith('#') || at < 1 ? [] : [[line.slice(0, at), line.slice(at + 1)]];
    }),
  );
}

/** @throws SharedStateUnavailable */
export async function readRedisFacts(url: string): Promise<RedisFacts> {
  const connection = new RedisConnection({ url }, 'commands', { warn: () => undefined });
  try {
    await connection.open(ANSWER_TIMEOUT);
    const asked = Date.now();
    const [seconds, micros] = await connection.send((redis) => redis.time());
    const answered = Date.now();
    const info = readInfo(await connection.send((redis) => redis.info()));
    return {
      version: info.get('redis_version') ?? 'unknown',
      persistence: persistenceOf(info, await configured(connection, 'save')),
      eviction: info.get('maxmemory_policy') ?? null,
      maxMemory: Number(info.get('maxmemory') ?? 0),
      clockAhead: Number(seconds) * 1000 + Number(micros) / 1000 - (asked + answered) / 2,
    };
  } finally {
    connection.close();
  }
}

function persistenceOf(info: ReadonlyMap<string, string>, save: string | null): RedisFacts['persistence'] {
  if (info.get('aof_enabled') === '1') return 'append-only file';
  if (save === null) return null;
  return save === '' ? 'none' : 'snapshots';
}

/** Null where a hosted Redis does not expose its configuration. */
async function configured(connection: RedisConnection, name: string): Promise<string | null> {
  try {
    const answer = (await connection.send((redis) => redis.config('GET', name))) as unknown[];
    return typeof answer[1] === 'string' ? answer[1] : null;
  } catch {
    return null;
  }
}
