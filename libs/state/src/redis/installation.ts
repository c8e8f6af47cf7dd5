import { createHmac } from 'node:crypto';
import { ForeignInstallation } from '../ports/shared-state.js';
import { type CheckedRedis, parseStoredObject } from './redis-connection.js';
import { readOrStore, readSecret } from './secrets.js';

/**
 * Makes the keys of a prefix those of one installation, the first that asks. What is kept are digests of its places, by a key that is
 * kept beside them: they tell nothing without that Redis. One place in common suffices, because replicas may name different members of one
 * replica set.
 * @returns the key beside them: another one than before tells that Redis lost what it held
 * @throws ForeignInstallation when the keys belong to another one. @throws SharedStateUnavailable
 */
export async function claimInstallation(redis: CheckedRedis, places: readonly string[]): Promise<Buffer> {
  const secret = await readSecret(redis, 'installation');
  const own = places.map((place) => createHmac('sha256', secret).update(place).digest('base64url'));
  const key = redis.key('installation', '');
  const kept = parseStoredObject(await readOrStore(redis, key, JSON.stringify({ places: own })))?.['places'];
  if (!Array.isArray(kept) || !kept.some((place) => own.includes(String(place))))
    throw new ForeignInstallation(key);
  // A place that is new is one of this installation: the database may be moved one step at a time.
  const all = [...new Set([...(kept as unknown[]), ...own])];
  if (all.length > kept.length)
    await redis.send((client) => client.set(key, JSON.stringify({ places: all })));
  return secret;
}
