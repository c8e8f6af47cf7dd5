import { createHash } from 'node:crypto';
import type { JWSHeaderParameters } from 'jose';
import { ageClock } from '#core';
import { ExpiringMap } from '#state';
import { InvalidToken } from '../errors.js';
import { type Claims, parseToken } from './claims.js';
import type { KeyRing, Keys } from './issuer-metadata.js';

/** Accepted signature algorithms. `none` and shared secrets are excluded. */
export const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;
export type Algorithm = (typeof ALGORITHMS)[number];

/** Claims of other tokens that an issuer signs with the same keys. */
const OTHER_KINDS = ['nonce', 'at_hash', 'c_hash', 's_hash', 'events'] as const;
const ACCESS_TOKEN_TYPES = new Set(['at+jwt', 'application/at+jwt', 'jwt', 'application/jwt']);

interface VerifierOptions {
  readonly issuer: string;
  /** Accepted audiences; a token must name one of them. */
  readonly audiences: readonly string[];
  readonly algorithms: readonly Algorithm[];
  /** Seconds. */
  readonly clockSkew: number;
  readonly keys: KeyRing;
}

/** Characters of a token of any issuer. Longer text is not parsed. */
const MAX_PARSED_LENGTH = 16_384;
/** Characters of a token that names this issuer. */
const MAX_TOKEN_LENGTH = 8192;

/** Milliseconds that the result of a verification is cached. */
const REMEMBERED_TIME = 60_000;

/** Verifies bearer tokens of one issuer and returns their claims. */
export class TokenVerifier {
  private readonly verified = new VerifiedTokens<Keys>(REMEMBERED_TIME);

  constructor(private readonly options: VerifierOptions) {}

  /**
   * Whether the token names this issuer. The token is not verified yet. Its length is checked only when it names this
   * issuer, because it may be meant for another rule.
   * @throws InvalidToken for an ambiguous or too long token
   */
  concerns(token: string): boolean {
    if (token.length > MAX_PARSED_LENGTH) return false;
    if (parseToken(token)?.claims['iss'] !== this.options.issuer) return false;
    if (token.length > MAX_TOKEN_LENGTH) throw new InvalidToken('too long');
    return true;
  }

  /**
   * @throws InvalidToken
   * @throws AuthenticationUnavailable when the keys of the issuer are not available
   */
  async verify(token: string): Promise<Claims> {
    const keys = await this.options.keys.current();
    const digest = createHash('sha256').update(token, 'utf8').digest('base64');
    const known = this.verified.find(digest, keys, this.options.clockSkew);
    if (known) return known;
    const { claims, by } = await this.verifyAnew(token, keys);
    this.verified.keep(digest, by, claims);
    return claims;
  }

  private async verifyAnew(token: string, known: Keys): Promise<{ claims: Claims; by: Keys }> {
    const parts = parseToken(token);
    if (!parts) throw new InvalidToken('no signed token');
    assertAccessToken(parts.header, parts.claims);
    const header = parts.header as JWSHeaderParameters;
    if (!this.options.algorithms.includes(header.alg as Algorithm)) throw new InvalidToken('algorithm');
    if (header.kid !== undefined && typeof header.kid !== 'string') throw new InvalidToken('kid');
    const { by, key } = await this.keyFor(header, known);
    const { jwtVerify, errors } = await import('jose');
    try {
      const { payload } = await jwtVerify(token, key, {
        issuer: this.options.issuer,
        audience: [...this.options.audiences],
        algorithms: [...this.options.algorithms],
        clockTolerance: this.options.clockSkew,
        requiredClaims: ['exp'],
      });
      assertIssued(payload, this.options.clockSkew);
      return { claims: payload, by };
    } catch (error) {
      if (error instanceof InvalidToken) throw error;
      if (error instanceof errors.JOSEError) throw new InvalidToken(error.code);
      throw new InvalidToken('a key that does not fit');
    }
  }

  /** An unknown key is fetched once more, within the cooldown of the key ring. */
  private async keyFor(header: JWSHeaderParameters, known: Keys) {
    try {
      return { by: known, key: await known.find(header) };
    } catch (error) {
      if (!(error instanceof InvalidToken)) throw error;
      const by = await this.options.keys.fetchAgain();
      if (by === known) throw error;
      return { by, key: await by.find(header) };
    }
  }
}

/**
 * @throws InvalidToken for other kinds of tokens that an issuer signs with the same keys, and for sender-constrained
 * tokens, whose proof is not checked
 */
function assertAccessToken(header: Claims, claims: Claims): void {
  const { typ } = header;
  if (typ !== undefined && !(typeof typ === 'string' && ACCESS_TOKEN_TYPES.has(typ.toLowerCase())))
    throw new InvalidToken('typ');
  if (OTHER_KINDS.some((name) => claims[name] !== undefined)) throw new InvalidToken('no access token');
  const { typ: kind, cnf } = claims;
  if (kind !== undefined && !(typeof kind === 'string' && kind.toLowerCase() === 'bearer'))
    throw new InvalidToken('no bearer token');
  if (cnf !== undefined) throw new InvalidToken('sender-constrained');
}

/**
 * A token of the future would outlive what is revoked until now: revocations hold for tokens that were issued before.
 * @param skew seconds
 * @throws InvalidToken
 */
function assertIssued({ iat }: { readonly iat?: number }, skew: number): void {
  if (iat !== undefined && iat > Date.now() / 1000 + skew) throw new InvalidToken('issued in the future');
}

interface Verified<K> {
  readonly claims: Claims;
  readonly by: K;
}

/**
 * Verified tokens by digest, so that the cache does not hold usable tokens. A full cache evicts the oldest token of
 * the subject that has most.
 */
export class VerifiedTokens<K extends object> {
  private readonly entries: ExpiringMap<Verified<K>>;

  /** @param lifetime milliseconds @param maxEntries of all subjects */
  constructor(
    private readonly lifetime: number,
    maxEntries = 2_000,
    now: () => number = ageClock,
  ) {
    this.entries = new ExpiringMap(maxEntries, now);
  }

  /**
   * @param keys the current ones: a token verified with other keys is verified again
   * @param skew seconds
   */
  find(digest: string, keys: K, skew: number): Claims | undefined {
    const entry = this.entries.get(digest);
    if (!entry) return undefined;
    const { exp } = entry.claims as { exp: number };
    const expired = exp + skew <= Date.now() / 1000;
    if (entry.by === keys && !expired) return entry.claims;
    this.entries.delete(digest);
    return undefined;
  }

  keep(digest: string, by: K, claims: Claims): void {
    this.entries.set(digest, { by, claims }, this.lifetime, { owner: readSubject(claims) });
  }
}

/** Owner of a cache entry. One cache holds tokens of one issuer only. */
function readSubject({ sub, client_id: client }: Claims): string {
  return typeof sub === 'string' ? `sub:${sub}` : `client:${String(client)}`;
}
