import { ExpiringMap } from '#cluster';
import type { Claims } from './token-parts.js';

interface Verified<K> {
  readonly claims: Claims;
  readonly by: K;
}

/**
 * What was verified a moment ago, by the digest of the token: who reads this memory cannot use it as one. When it is full, the
 * subject that has most tokens in it loses its oldest.
 */
export class VerifiedTokens<K extends object> {
  private readonly entries: ExpiringMap<Verified<K>>;

  /** @param lifetime milliseconds @param maxEntries of all subjects */
  constructor(
    private readonly lifetime: number,
    maxEntries = 2_000,
    now: () => number = () => performance.now(),
    private readonly wallClock: () => number = Date.now,
  ) {
    this.entries = new ExpiringMap(maxEntries, now);
  }

  /**
   * @param keys those that are believed now: what other keys verified is verified again
   * @param skew seconds
   */
  find(digest: string, keys: K, skew: number): Claims | undefined {
    const entry = this.entries.get(digest);
    if (!entry) return undefined;
    const { exp } = entry.claims as { exp: number };
    const expired = exp + skew <= this.wallClock() / 1000;
    if (entry.by === keys && !expired) return entry.claims;
    this.entries.delete(digest);
    return undefined;
  }

  keep(digest: string, by: K, claims: Claims): void {
    this.entries.set(digest, { by, claims }, this.lifetime, { owner: subjectOf(claims) });
  }
}

/** Of one issuer, whose tokens alone one memory holds. */
function subjectOf({ sub, client_id: client }: Claims): string {
  return typeof sub === 'string' ? `sub:${sub}` : `client:${String(client)}`;
}
