import { createHash } from 'node:crypto';
import type { RateLimiter } from '#core';
import { type SharedState, SharedStateUnavailable, type VersionedStore } from '#state';
import {
  type KeyedWrite,
  WRITE_KEY_LIFETIME,
  type WriteMark,
  WriteKeys,
  WriteKeysSpent,
  WriteKeysUnavailable,
} from './write-keys.js';

/** Keys of writes in the state that replicas share. */
export class StoredWriteKeys extends WriteKeys {
  private readonly records: VersionedStore;
  private readonly limiter: RateLimiter;

  /** @param perDay calls with a key that one principal may make per day. Default 5,000 */
  constructor({ writeKeys, limiters }: Pick<SharedState, 'writeKeys' | 'limiters'>, perDay = 5_000) {
    super();
    this.records = writeKeys;
    this.limiter = limiters.limiter('write-keys', { limit: perDay, window: WRITE_KEY_LIFETIME / 1000 });
  }

  begin(principal: string, key: string, digest: string): Promise<KeyedWrite | null> {
    const id = idOf(principal, key);
    return reached(async () => {
      // Limits the keys of one principal, so that it cannot use the space of all others.
      const spent = await this.limiter.check(principal);
      if (spent) throw new WriteKeysSpent(spent);
      if (await this.records.create(id, { digest, state: 'begun' }, WRITE_KEY_LIFETIME)) return null;
      const held = await this.records.find(id);
      // The record expired or is not valid: a write that may have been applied is never treated as not applied.
      return (held && keyedWriteOf(held.value)) ?? { digest, state: 'begun' };
    });
  }

  done(principal: string, key: string, write: Omit<KeyedWrite, 'state'>): Promise<void> {
    const id = idOf(principal, key);
    return reached(async () => {
      const held = await this.records.find(id);
      const value = { ...write, state: 'done' };
      if (held) await this.records.replace(id, held.revision, value, WRITE_KEY_LIFETIME);
      else await this.records.create(id, value, WRITE_KEY_LIFETIME);
    });
  }

  sending(
    principal: string,
    key: string,
    write: Omit<KeyedWrite, 'state'>,
    previous: WriteMark | undefined,
  ): Promise<boolean> {
    const id = idOf(principal, key);
    return reached(async () => {
      const revision = await this.revisionOf(id, previous);
      if (revision === undefined) return false;
      return this.records.replace(id, revision, { ...write, state: 'begun' }, WRITE_KEY_LIFETIME);
    });
  }

  forget(principal: string, key: string, mark: WriteMark | undefined): Promise<void> {
    const id = idOf(principal, key);
    return reached(async () => {
      const revision = await this.revisionOf(id, mark);
      if (revision === undefined) return;
      // A released key cannot be taken over, so that the record of another attempt is never removed.
      if (await this.records.replace(id, revision, { state: 'released' }, WRITE_KEY_LIFETIME))
        await this.records.remove(id);
    });
  }

  /** @returns undefined when the key is not in the state in which the attempt with this mark left it */
  private async revisionOf(id: string, mark: WriteMark | undefined): Promise<number | undefined> {
    const held = await this.records.find(id);
    const known = held && keyedWriteOf(held.value);
    return known?.state === 'begun' && known.mark?.attempt === mark?.attempt ? held?.revision : undefined;
  }
}

/** A digest: neither the principal nor the key can be derived from it. */
function idOf(principal: string, key: string): string {
  return createHash('sha256')
    .update(JSON.stringify([principal, key]))
    .digest('base64url');
}

function keyedWriteOf(value: Readonly<Record<string, unknown>>): KeyedWrite | undefined {
  const { digest, state, objectId } = value;
  if (typeof digest !== 'string' || (state !== 'begun' && state !== 'done')) return undefined;
  const mark = markOf(value['mark']);
  return { digest, state, ...(typeof objectId === 'string' && { objectId }), ...(mark && { mark }) };
}

function markOf(value: unknown): WriteMark | undefined {
  if (value === null || typeof value !== 'object') return undefined;
  const { attempt, before, after } = value as Partial<Record<keyof WriteMark, unknown>>;
  if (typeof attempt !== 'string' || typeof before !== 'string' || !Array.isArray(after)) return undefined;
  return { attempt, before, after: after.filter((stamp) => typeof stamp === 'string') };
}

async function reached<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof SharedStateUnavailable ? new WriteKeysUnavailable() : error;
  }
}
