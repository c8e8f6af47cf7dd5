import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

const derive = promisify<Buffer, Buffer, number, object, Buffer>(scrypt as never);

/** About 64 MiB and a tenth of a second: what a guess costs. */
const COST = { N: 2 ** 16, r: 8, p: 1 } as const;
const MAX_COST = { N: 2 ** 18, r: 16, p: 4 };
const BYTES = 32;

/** An API key as a configuration may keep it, where reading the file must not be enough to use the key. */
export type KeyHash =
  | { readonly kind: 'sha256'; readonly digest: Buffer }
  | {
      readonly kind: 'scrypt';
      readonly N: number;
      readonly r: number;
      readonly p: number;
      readonly salt: Buffer;
      readonly hash: Buffer;
    };

export type SlowKeyHash = Extract<KeyHash, { readonly kind: 'scrypt' }>;

function digestOf(key: string): Buffer {
  return createHash('sha256').update(key, 'utf8').digest();
}

/** @throws TypeError for a text that is no hash of a key */
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
  return { kind: 'scrypt', N, r, p, salt, hash };
}

/** Slow on purpose, off the main thread. */
export async function isKeyOf(key: string, known: KeyHash): Promise<boolean> {
  if (known.kind === 'sha256') return timingSafeEqual(digestOf(key), known.digest);
  const { N, r, p, salt, hash } = known;
  return timingSafeEqual(await derive(Buffer.from(key, 'utf8'), salt, BYTES, scryptCost({ N, r, p })), hash);
}

/** Of a key that a person may have chosen: with a salt, and slow. */
export async function slowHashOf(key: string): Promise<string> {
  const salt = randomBytes(16);
  const hash = await derive(Buffer.from(key, 'utf8'), salt, BYTES, scryptCost(COST));
  return `scrypt:${COST.N}:${COST.r}:${COST.p}:${salt.toString('base64url')}:${hash.toString('base64url')}`;
}

/** A key that cannot be guessed, so that a plain digest of it cannot be turned back either. */
export function newKey(): { readonly key: string; readonly hash: string } {
  const key = `parley_${randomBytes(32).toString('base64url')}`;
  return { key, hash: `sha256:${digestOf(key).toString('hex')}` };
}

const scryptCost = ({ N, r, p }: { N: number; r: number; p: number }) => ({
  N,
  r,
  p,
  maxmem: 256 * N * r + 1_048_576,
});
