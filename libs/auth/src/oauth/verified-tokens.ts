import type { Claims } from './token-parts.js';

interface Verified<K> {
  readonly claims: Claims;
  readonly by: K;
  /** Of the clock that only moves forward. */
  readonly until: number;
}

/** What was verified a moment ago, by the digest of the token: who reads this memory cannot use it as one. */
export class VerifiedTokens<K extends object> {
  private readonly entries = new Map<string, Verified<K>>();

  /** @param lifetime milliseconds @param maxEntries the oldest gives way */
  constructor(
    private readonly lifetime: number,
    private readonly maxEntries = 2_000,
    private readonly now: () => number = () => performance.now(),
    private readonly wallClock: () => number = Date.now,
  ) {}

  /**
   * @param keys those that are believed now: what other keys verified is verified again
   * @param skew seconds
   */
  find(digest: string, keys: K, skew: number): Claims | undefined {
    const entry = this.entries.get(digest);
    if (!entry) return undefined;
    const { exp } = entry.claims as { exp: number };
    const expired = exp + skew <= this.wallClock() / 1000;
    if (entry.by === keys && entry.until > this.now() && !expired) return entry.claims;
    this.entries.delete(digest);
    return undefined;
  }

  keep(digest: string, by: K, claims: Claims): void {
    if (this.entries.size >= this.maxEntries) {
      const oldest = this.entries.keys().next().value;
      if (oldest !== undefined) this.entries.delete(oldest);
    }
    this.entries.set(digest, { by, claims, until: this.now() + this.lifetime });
  }
}
