import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { ageClock } from '#core';
import type { VersionedStore } from '#state';
import { AuthenticationUnavailable, InvalidToken } from '../errors.js';
import { type Claims, readClient } from './claims.js';
import { requestJson } from './issuer-request.js';

/** Whether a verified token has been revoked. Checked on every request, also for cached tokens. */
export interface Revocations {
  /**
   * @throws InvalidToken when it has been
   * @throws AuthenticationUnavailable when it cannot be checked: the token is not accepted
   */
  assertHolds(token: string, claims: Claims): Promise<void>;
}

interface IntrospectionOptions {
  readonly endpoint: () => Promise<string>;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Seconds that a positive answer is cached; 0: not at all. */
  readonly cache: number;
}

const MAX_ENTRIES = 2_000;

/** RFC 7662: asks the issuer whether a token is active. Only an explicit yes is accepted. */
export class Introspection implements Revocations {
  /** Expiry of each positive answer, by digest of the token. */
  private readonly active = new LRUCache<string, number>({ max: MAX_ENTRIES });

  constructor(private readonly options: IntrospectionOptions) {}

  async assertHolds(token: string, claims: Claims): Promise<void> {
    const digest = createHash('sha256').update(token, 'utf8').digest('base64');
    if ((this.active.peek(digest) ?? -Infinity) > ageClock()) return;
    this.active.delete(digest);
    const asked = ageClock();
    const { status, value } = await this.ask(token);
    if (status !== 200 || !value) throw new AuthenticationUnavailable(`introspection answered ${status}`);
    const same = ['iss', 'sub'].every((name) => value[name] === undefined || value[name] === claims[name]);
    if (value['active'] !== true || !same) throw new InvalidToken('revoked');
    if (this.options.cache <= 0) return;
    this.active.set(digest, asked + this.options.cache * 1000);
  }

  private async ask(token: string) {
    const { clientId, clientSecret } = this.options;
    const encoded = [clientId, clientSecret].map((part) => encodeURIComponent(part)).join(':');
    return requestJson(await this.options.endpoint(), {
      method: 'POST',
      headers: {
        Authorization: `Basic ${Buffer.from(encoded).toString('base64')}`,
        'Content-Type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({ token, token_type_hint: 'access_token' }).toString(),
    });
  }
}

export type RevokedBy = 'sub' | 'jti' | 'client';

/** A unique short name for a subject, token or client of one issuer. */
export function revocationName(issuer: string, by: RevokedBy, value: string): string {
  return createHash('sha256')
    .update(JSON.stringify([issuer, by, value]))
    .digest('base64url');
}

/** Revocations by the operator, which all replicas share: by subject, client or token id. They apply to tokens issued before a moment. */
export class RevocationList implements Revocations {
  /** @param clockSkew seconds that an issuer's clock may be ahead */
  constructor(
    private readonly issuer: string,
    private readonly store: Pick<VersionedStore, 'find'>,
    private readonly clockSkew: number,
  ) {}

  async assertHolds(_token: string, claims: Claims): Promise<void> {
    const named: [RevokedBy, unknown][] = [
      ['sub', claims['sub']],
      ['jti', claims['jti']],
      ['client', readClient(claims)],
    ];
    const names = named.flatMap(([by, value]) =>
      typeof value === 'string' ? [revocationName(this.issuer, by, value)] : [],
    );
    const { iat } = claims;
    const issued = typeof iat === 'number' ? iat - this.clockSkew : -Infinity;
    const moments = await Promise.all(names.map((name) => this.findMoment(name)));
    if (moments.some((moment) => moment !== null && issued <= moment)) throw new InvalidToken('revoked');
  }

  /** Seconds since the epoch up to which tokens of this name are revoked; null when none are. */
  private async findMoment(name: string): Promise<number | null> {
    const record = await this.store.find(name).catch((error: unknown) => {
      throw new AuthenticationUnavailable(`revocations: ${String((error as Error).name)}`);
    });
    const before = record?.value['before'];
    return typeof before === 'number' ? before : null;
  }
}
