import { createHash, createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { LRUCache } from 'lru-cache';
import { FairQueue, NoCapacityError } from '#core';
import { AuthenticationUnavailable } from './errors.js';

const derive = promisify<Buffer, Buffer, number, object, Buffer>(scrypt as never);

/** Cost of one guess: about 64 MiB and a tenth of a second. */
const COST = { N: 2 ** 16, r: 8, p: 1 } as const;
const MAX_COST = { N: 2 ** 18, r: 16, p: 4 };
const HASH_BYTES = 32;

/** An API key as a configuration stores it: who reads the file cannot use the key. */
export type KeyHash =
  | { readonly kind: 'sha256'; readonly digest: Buffer }
  | {
      readonly kind: 'scrypt';
      /** As it is written in the configuration. */
      readonly text: string;
      readonly N: number;
      readonly r: number;
      readonly p: number;
      readonly salt: Buffer;
      readonly hash: Buffer;
    };

type SlowKeyHash = Extract<KeyHash, { readonly kind: 'scrypt' }>;

/** The SHA-256 digest of a key. */
export const computeDigest = (key: string): Buffer => createHash('sha256').update(key, 'utf8').digest();

/** What is kept of a key that a configuration holds in clear text. @throws TypeError for a blank one */
export function hashPlainKey(key: string): KeyHash {
  if (key.trim() === '') throw new TypeError('an API key must not be blank');
  return { kind: 'sha256', digest: computeDigest(key) };
}

/** @throws TypeError when the text is not a key hash */
export function parseKeyHash(text: string): KeyHash {
  const plain = /^sha256:([0-9a-f]{64})$/.exec(text)?.[1];
  if (plain !== undefined) return { kind: 'sha256', digest: Buffer.from(plain, 'hex') };
  const slow = /^scrypt:(\d{1,7}):(\d{1,2}):(\d{1,2}):([A-Za-z0-9_-]{16,}):([A-Za-z0-9_-]{43})$/.exec(text);
  if (!slow) throw new TypeError('expected sha256:… or scrypt:…, as parley hash-key writes it');
  const [N, r, p] = slow.slice(1, 4).map(Number) as [number, number, number];
  const isPower = N > 1 && (N & (N - 1)) === 0;
  if (!isPower || N < 2 ** 14 || N > MAX_COST.N || r < 8 || r > MAX_COST.r || p < 1 || p > MAX_COST.p)
    throw new TypeError('scrypt: cost out of range');
  const [salt, hash] = slow.slice(4).map((part) => Buffer.from(part, 'base64url')) as [Buffer, Buffer];
  return { kind: 'scrypt', text, N, r, p, salt, hash };
}

/** Slow by design; runs off the main thread. */
async function matchesKey(key: string, { N, r, p, salt, hash }: SlowKeyHash): Promise<boolean> {
  return timingSafeEqual(
    await derive(Buffer.from(key, 'utf8'), salt, HASH_BYTES, scryptCost({ N, r, p })),
    hash,
  );
}

/** Hashes a key that a person may have chosen: salted and slow. */
export async function createSlowHash(key: string): Promise<string> {
  const salt = randomBytes(16);
  const hash = await derive(Buffer.from(key, 'utf8'), salt, HASH_BYTES, scryptCost(COST));
  return `scrypt:${COST.N}:${COST.r}:${COST.p}:${salt.toString('base64url')}:${hash.toString('base64url')}`;
}

/** Generates a random key. It cannot be guessed, so a plain digest of it is safe to store. */
export function newKey(): { readonly key: string; readonly hash: string } {
  const key = `parley_${randomBytes(32).toString('base64url')}`;
  return { key, hash: `sha256:${computeDigest(key).toString('hex')}` };
}

const scryptCost = ({ N, r, p }: { N: number; r: number; p: number }) => ({
  N,
  r,
  p,
  maxmem: 256 * N * r + 1_048_576,
});

/** Remembered results of each kind; the least recently added is evicted. */
const MAX_KNOWN = 1_000;

/** Slow comparisons that run at once in this process. More would occupy all threads of the pool. */
const UNKNOWN_KEYS = { atOnce: 2, waitingPerKey: 64, waiting: 512, timeout: 10_000 };
/** Keys that another rule recognises are few, and do not wait behind unknown ones. */
const RECOGNISED_KEYS = { atOnce: 1, waitingPerKey: 1_000, timeout: 10_000 };

/** Describes the caller of a comparison. */
interface ComparisonRequest {
  /** Fairness key: callers of one network share a queue. */
  readonly network: string;
  /** Whether another rule recognises the key. */
  readonly recognisedElsewhere: boolean;
}

/**
 * Compares keys with slow hashes for all rules of the process. Each pair is compared once, few at a time, and waiting
 * networks take turns. Results for right keys, and for wrong ones that another rule recognises, are not evicted by a
 * flood of other keys.
 */
export class SlowComparisons {
  private readonly unknown = new FairQueue(UNKNOWN_KEYS);
  private readonly known = new FairQueue(RECOGNISED_KEYS);
  private readonly right = new LRUCache<string, boolean>({ max: MAX_KNOWN });
  private readonly wrongRecognised = new LRUCache<string, boolean>({ max: MAX_KNOWN });
  private readonly wrong = new LRUCache<string, boolean>({ max: MAX_KNOWN });
  private readonly running = new Map<string, Promise<boolean>>();
  /** Random per process: names of pairs are not meaningful elsewhere. */
  private readonly secret = randomBytes(32);

  /** @param compare default: derives the hash with scrypt */
  constructor(private readonly compare: (key: string, hash: SlowKeyHash) => Promise<boolean> = matchesKey) {}

  /** Whether the result is remembered. */
  isKnown(key: string, hash: SlowKeyHash): boolean {
    return this.findVerdict(this.pairName(key, hash)) !== undefined;
  }

  /** @throws AuthenticationUnavailable when too many unknown keys wait */
  async matches(key: string, hash: SlowKeyHash, request: ComparisonRequest): Promise<boolean> {
    const name = this.pairName(key, hash);
    const before = this.findVerdict(name);
    if (before !== undefined) return before;
    // Concurrent requests with the same key share one comparison. A key that another rule recognises does not wait
    // for one in the queue of unknown keys.
    const lane = `${request.recognisedElsewhere}:${name}`;
    let comparing = this.running.get(lane);
    if (!comparing) {
      comparing = this.compareInTurn(key, hash, request).finally(() => this.running.delete(lane));
      this.running.set(lane, comparing);
    }
    const verdict = await comparing;
    const results = verdict ? this.right : request.recognisedElsewhere ? this.wrongRecognised : this.wrong;
    results.set(name, verdict);
    return verdict;
  }

  private async compareInTurn(key: string, hash: SlowKeyHash, request: ComparisonRequest): Promise<boolean> {
    const turns = request.recognisedElsewhere ? this.known : this.unknown;
    try {
      return await turns.run(request.network, () => this.compare(key, hash));
    } catch (error) {
      if (error instanceof NoCapacityError)
        throw new AuthenticationUnavailable('too many unknown keys at once');
      throw error;
    }
  }

  private findVerdict(name: string): boolean | undefined {
    return this.right.peek(name) ?? this.wrongRecognised.peek(name) ?? this.wrong.peek(name);
  }

  private pairName(key: string, { salt, hash }: SlowKeyHash): string {
    return createHmac('sha256', this.secret).update(salt).update(hash).update(key, 'utf8').digest('base64');
  }
}

/** The instance of this process. */
export const slowComparisons = new SlowComparisons();
