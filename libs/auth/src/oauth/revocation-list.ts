import { createHash } from 'node:crypto';
import { InvalidToken } from '../authentication-faults.js';
import { clientOf } from './claim-values.js';
import type { Revocations } from './revocations.js';
import type { Claims } from './token-parts.js';

/** What an operator took back, on all replicas. */
export abstract class RevokedBook {
  /**
   * @returns seconds since the epoch up to which tokens issued under this name are taken back; null: none are
   * @throws AuthenticationUnavailable
   */
  abstract until(name: string): Promise<number | null>;
}

export type RevokedBy = 'sub' | 'jti' | 'client';

/** A subject, a token or a client of one issuer, as one short name that no other has. */
export function revocationName(issuer: string, by: RevokedBy, value: string): string {
  return createHash('sha256')
    .update(JSON.stringify([issuer, by, value]))
    .digest('base64url');
}

/** Takes tokens back that were issued before a moment, by whom they are for, by whom they were got, or by their own id. */
export class RevocationList implements Revocations {
  /** @param clockSkew seconds by which an issuer's clock may be ahead */
  constructor(
    private readonly issuer: string,
    private readonly book: RevokedBook,
    private readonly clockSkew: number,
  ) {}

  async assertHolds(_token: string, claims: Claims): Promise<void> {
    const named: [RevokedBy, unknown][] = [
      ['sub', claims['sub']],
      ['jti', claims['jti']],
      ['client', clientOf(claims)],
    ];
    const names = named.flatMap(([by, value]) =>
      typeof value === 'string' ? [revocationName(this.issuer, by, value)] : [],
    );
    const { iat } = claims;
    const issued = typeof iat === 'number' ? iat - this.clockSkew : -Infinity;
    const moments = await Promise.all(names.map((name) => this.book.until(name)));
    if (moments.some((moment) => moment !== null && issued <= moment)) throw new InvalidToken('revoked');
  }
}
