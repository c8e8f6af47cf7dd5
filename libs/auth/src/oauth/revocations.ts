import { createHash } from 'node:crypto';
import { AuthenticationUnavailable, InvalidToken } from '../errors.js';
import { type Claims, clientOf } from './claims.js';
import { askForJson } from './issuer-request.js';

/** Whether a token that was verified has been taken back since. Asked on every request, also of tokens known by heart. */
export interface Revocations {
  /**
   * @throws InvalidToken when it was
   * @throws AuthenticationUnavailable when nobody can tell: never taken for a no
   */
  assertHolds(token: string, claims: Claims): Promise<void>;
}

interface IntrospectionOptions {
  readonly endpoint: () => Promise<string>;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Seconds that a yes is believed; 0: never. */
  readonly cache: number;
}

const MAX_ENTRIES = 2_000;

/** RFC 7662: asks the issuer whether a token still holds. Nothing but a yes is one. */
export class Introspection implements Revocations {
  /** When each yes ends, by digest. */
  private readonly active = new Map<string, number>();

  constructor(
    private readonly options: IntrospectionOptions,
    private readonly now: () => number = () => performance.now(),
  ) {}

  async assertHolds(token: string, claims: Claims): Promise<void> {
    const digest = createHash('sha256').update(token, 'utf8').digest('base64');
    if ((this.active.get(digest) ?? -Infinity) > this.now()) return;
    this.active.delete(digest);
    const asked = this.now();
    const { status, value } = await this.ask(token);
    if (status !== 200 || !value) throw new AuthenticationUnavailable(`introspection answered ${status}`);
    const same = ['iss', 'sub'].every((name) => value[name] === undefined || value[name] === claims[name]);
    if (value['active'] !== true || !same) throw new InvalidToken('revoked');
    if (this.options.cache <= 0) return;
    if (this.active.size >= MAX_ENTRIES) this.active.delete(this.active.keys().next().value as string);
    this.active.set(digest, asked + this.options.cache * 1000);
  }

  private async ask(token: string) {
    const { clientId, clientSecret } = this.options;
    const encoded = [clientId, clientSecret].map((part) => encodeURIComponent(part)).join(':');
    return askForJson(await this.options.endpoint(), {
      method: 'POST',
      headers: {
        Authorization: `Basic ${Buffer.from(encoded).toString('base64')}`,
        'Content-Type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({ token, token_type_hint: 'access_token' }).toString(),
    });
  }
}

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
    private readonly store: RevokedBook,
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
    const moments = await Promise.all(names.map((name) => this.store.until(name)));
    if (moments.some((moment) => moment !== null && issued <= moment)) throw new InvalidToken('revoked');
  }
}
