import { Inject, Injectable, Optional } from '@nestjs/common';
import { createHash } from 'node:crypto';
import type { RateLimiter } from '#core';
import { SharedState, SharedStateUnavailable, type VersionedStore } from '#state';

/** Time stamps of a row around one attempt to write it. By them a later attempt determines whether this one was applied. */
export interface WriteMark {
  /** Identifies this attempt. */
  readonly attempt: string;
  /**
   * The time stamp that the row must have for the attempt to be applied: of an update `updatedAt`, of a deletion `createdAt`.
   */
  readonly before: string;
  /** The `updatedAt` that this attempt and the previous ones set on the row. Empty for a deletion. */
  readonly after: readonly string[];
}

/** The stored state of a write that carried a key. It contains no values: the written row is read again. */
export interface KeyedWrite {
  /** Digest of the operation and its arguments: another one under the same key is an error of the caller. */
  readonly digest: string;
  /** `begun`: it was about to be sent, and the outcome is not known. */
  readonly state: 'begun' | 'done';
  /** Id of the written row. Absent while it is not known. */
  readonly objectId?: string;
  /** Time stamps of the last attempt that was about to be sent. Absent: the row does not show whether there was one. */
  readonly mark?: WriteMark;
}

/** Milliseconds for which a key is stored. */
const WRITE_KEY_LIFETIME = 24 * 3_600_000;

/** Keys cannot be read or stored at the moment. */
export class WriteKeysUnavailable extends Error {
  override readonly name = 'WriteKeysUnavailable';
}

/** The owner has used its limit of keys. */
export class WriteKeysSpent extends Error {
  override readonly name = 'WriteKeysSpent';
  /** @param rate the limit, and the seconds until a further key is permitted */
  constructor(
    readonly rate: { readonly limit: number; readonly window: number; readonly retryAfter: number },
  ) {
    super();
  }
}

/** Keys of writes for all replicas, each of one owner (`callerKey`). @throws WriteKeysUnavailable, WriteKeysSpent: a write then does not begin */
@Injectable()
export class WriteKeys {
  private readonly records: VersionedStore;
  private readonly limiter: RateLimiter;

  /** @param perDay calls with a key that one owner may make per day. Default 5,000 */
  constructor(
    @Inject(SharedState) { writeKeys, limiters }: Pick<SharedState, 'writeKeys' | 'limiters'>,
    @Optional() perDay = 5_000,
  ) {
    this.records = writeKeys;
    this.limiter = limiters.limiter('write-keys', { limit: perDay, window: WRITE_KEY_LIFETIME / 1000 });
  }

  /** Stores a key that is new. @returns its stored state when it is not */
  begin(owner: string, key: string, digest: string): Promise<KeyedWrite | null> {
    const id = toId(owner, key);
    return reachStore(async () => {
      // Limits the keys of one owner, so that it cannot use the space of all others.
      const spent = await this.limiter.check(owner);
      if (spent) throw new WriteKeysSpent(spent);
      if (await this.records.create(id, { digest, state: 'begun' }, WRITE_KEY_LIFETIME)) return null;
      const held = await this.records.find(id);
      // The record expired or is not valid: a write that may have been applied is never treated as not applied.
      return (held && readKeyedWrite(held.value)) ?? { digest, state: 'begun' };
    });
  }

  /** Records the result of the write. */
  markDone(owner: string, key: string, write: Omit<KeyedWrite, 'state'>): Promise<void> {
    const id = toId(owner, key);
    return reachStore(async () => {
      const held = await this.records.find(id);
      const value = { ...write, state: 'done' };
      if (held) await this.records.replace(id, held.revision, value, WRITE_KEY_LIFETIME);
      else await this.records.create(id, value, WRITE_KEY_LIFETIME);
    });
  }

  /**
   * Records that an attempt is about to be sent.
   * @param write without a mark: the row does not show later whether the attempt was applied
   * @param previous the mark that this one replaces
   * @returns false when another attempt has recorded its own since then: this one must not be sent
   */
  markSending(
    owner: string,
    key: string,
    write: Omit<KeyedWrite, 'state'>,
    previous: WriteMark | undefined,
  ): Promise<boolean> {
    const id = toId(owner, key);
    return reachStore(async () => {
      const revision = await this.findRevision(id, previous);
      if (revision === undefined) return false;
      return this.records.replace(id, revision, { ...write, state: 'begun' }, WRITE_KEY_LIFETIME);
    });
  }

  /**
   * Deletes a key whose write is known not to have been applied: it may be tried again.
   * @param mark of the attempt that was not applied. A key that another attempt has taken over is kept
   */
  forget(owner: string, key: string, mark: WriteMark | undefined): Promise<void> {
    const id = toId(owner, key);
    return reachStore(async () => {
      const revision = await this.findRevision(id, mark);
      if (revision === undefined) return;
      // A released key cannot be taken over, so that the record of another attempt is never removed.
      if (await this.records.replace(id, revision, { state: 'released' }, WRITE_KEY_LIFETIME))
        await this.records.remove(id);
    });
  }

  /** @returns undefined when the key is not in the state in which the attempt with this mark left it */
  private async findRevision(id: string, mark: WriteMark | undefined): Promise<number | undefined> {
    const held = await this.records.find(id);
    const known = held && readKeyedWrite(held.value);
    return known?.state === 'begun' && known.mark?.attempt === mark?.attempt ? held?.revision : undefined;
  }
}

/** A digest: neither the owner nor the key can be derived from it. */
function toId(owner: string, key: string): string {
  return createHash('sha256')
    .update(JSON.stringify([owner, key]))
    .digest('base64url');
}

function readKeyedWrite(value: Readonly<Record<string, unknown>>): KeyedWrite | undefined {
  const { digest, state, objectId } = value;
  if (typeof digest !== 'string' || (state !== 'begun' && state !== 'done')) return undefined;
  const mark = readMark(value['mark']);
  return { digest, state, ...(typeof objectId === 'string' && { objectId }), ...(mark && { mark }) };
}

function readMark(value: unknown): WriteMark | undefined {
  if (value === null || typeof value !== 'object') return undefined;
  const { attempt, before, after } = value as Partial<Record<keyof WriteMark, unknown>>;
  if (typeof attempt !== 'string' || typeof before !== 'string' || !Array.isArray(after)) return undefined;
  return { attempt, before, after: after.filter((stamp) => typeof stamp === 'string') };
}

async function reachStore<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof SharedStateUnavailable ? new WriteKeysUnavailable() : error;
  }
}
