import { createHash, randomUUID } from 'node:crypto';
import { Refused, refuse } from '#core';
import {
  type KeyedWrite,
  type WriteKeys,
  WriteKeysSpent,
  WriteKeysUnavailable,
  type WriteMark,
} from '../write-keys.js';

const KEY = /^[A-Za-z0-9._:-]{1,128}$/;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
/** Long enough that two keys do not collide, and within the length that Parse accepts for an id. */
const ID_LENGTH = 24;

/** Maximum number of attempts at one write whose time stamps are stored. */
const MAX_ATTEMPTS = 16;

/** One attempt at a keyed write. */
export interface KeyedAttempt {
  /** The id of a created row: the same in every attempt. */
  readonly objectId: string;
  /** The previous attempt, whose outcome is not known. Absent: there was none, or it was not applied. */
  readonly previous: WriteMark | undefined;
  /**
   * Must be called before the write is sent.
   * @param stamps time stamps by which a later attempt determines whether the write was applied. Absent: it cannot
   * @throws Refused when another attempt has begun meanwhile, or the mark cannot be stored
   */
  markSending(objectId: string, stamps?: { readonly before: string; readonly after?: string }): Promise<void>;
}

/** One keyed write, and its answer when it was done before. */
export interface KeyedAction<T> {
  /** The operation and its arguments, as the caller sent them. */
  readonly named: readonly unknown[];
  /** Whether a repetition changes nothing further: then the write is repeated when an answer was lost. */
  readonly repeatable: boolean;
  /** @returns the result, and the id of the row. @throws Refused `outcome: unknown` when the outcome of `previous` cannot be decided */
  readonly write: (attempt: KeyedAttempt) => Promise<{ readonly result: T; readonly objectId: string }>;
  /** The answer to a repetition. @throws Refused when the caller could not write, or no longer reaches, the row now */
  readonly again: (objectId: string) => Promise<T>;
}

/**
 * The row id that a key determines: the same for every attempt at the same call, so that the database itself refuses a second
 * row, even when no attempt is stored.
 */
function objectIdFor(owner: string, key: string, digest: string): string {
  const bytes = createHash('sha512')
    .update(JSON.stringify(['object', owner, key, digest]))
    .digest();
  return Array.from(bytes.subarray(0, ID_LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join('');
}

/** Writes of one owner that carry a key: a completed write returns its answer again and is never repeated. */
export class KeyedWrites {
  constructor(
    private readonly keys: WriteKeys | null,
    private readonly owner: string,
  ) {}

  /**
   * @throws Refused for a malformed key or the key of another call, while its outcome is unknown, or where keys are
   * unavailable
   */
  async run<T>(key: unknown, action: KeyedAction<T>): Promise<T> {
    const checked = checkKey(key);
    const digest = computeDigest(action.named);
    const { keys } = this;
    if (!keys) throw refuse.keysUnavailable();
    const known = await this.atKeys(() => keys.begin(this.owner, checked, digest));
    if (known && known.digest !== digest) throw otherArguments();
    if (known?.state === 'done') return action.again(known.objectId ?? '');
    if (known && !known.mark && !action.repeatable) throw refuse.keyedOutcomeUnknown();
    return this.write(keys, checked, digest, action, known);
  }

  private async write<T>(
    keys: WriteKeys,
    key: string,
    digest: string,
    action: KeyedAction<T>,
    known: KeyedWrite | null,
  ): Promise<T> {
    const { owner } = this;
    let mark = known?.mark;
    const attempt: KeyedAttempt = {
      objectId: objectIdFor(owner, key, digest),
      previous: mark,
      markSending: async (objectId, stamps) => {
        const next = stamps && nextMark(stamps, known?.mark);
        const write = { digest, objectId, ...(next && { mark: next }) };
        if (!(await this.atKeys(() => keys.markSending(owner, key, write, mark))))
          throw refuse.keyedOutcomeUnknown();
        mark = next;
      },
    };
    try {
      const { result, objectId } = await action.write(attempt);
      // The write is done, whether or not the key can be stored: if not, a repetition is refused.
      await keys.markDone(owner, key, { digest, objectId }).catch(() => undefined);
      return result;
    } catch (error) {
      // The outcome of an earlier attempt stays unknown.
      if (!known && error instanceof Refused && error.refusal.details?.outcome !== 'unknown')
        await keys.forget(owner, key, mark).catch(() => undefined);
      throw error;
    }
  }

  /** Runs an operation of the key store; its errors become refusals. */
  private async atKeys<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof WriteKeysSpent) {
        const { limit, window, retryAfter } = error.rate;
        throw refuse.rateLimited(limit, window, retryAfter);
      }
      throw error instanceof WriteKeysUnavailable ? refuse.keysUnavailable() : error;
    }
  }
}

/** @throws Refused when more attempts have an unknown outcome than are stored */
function nextMark(
  { before, after }: { readonly before: string; readonly after?: string },
  previous: WriteMark | undefined,
): WriteMark {
  const stamps = [...(previous?.after ?? []), ...(after === undefined ? [] : [after])];
  if (stamps.length > MAX_ATTEMPTS) throw refuse.keyedOutcomeUnknown();
  return { attempt: randomUUID(), before, after: stamps };
}

function checkKey(key: unknown): string {
  if (typeof key === 'string' && KEY.test(key)) return key;
  throw refuse.invalidArgument('idempotency_key must be 1 to 128 letters, digits and the characters . _ : -');
}

function otherArguments(): Refused {
  return refuse.invalidArgument(
    'idempotency_key was used for another call: a key stands for one write, so give a new one to this',
  );
}

/** Equal arguments have equal digests, in whatever order their members are. */
function computeDigest(named: readonly unknown[]): string {
  const text = JSON.stringify(named, (_, value: unknown) =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return createHash('sha256').update(text).digest('base64url');
}
