import { createHash } from 'node:crypto';
import { AuthenticationUnavailable, InvalidToken } from '../authentication-faults.js';
import { askForJson } from './bounded-json.js';
import type { Revocations } from './revocations.js';
import type { Claims } from './token-parts.js';

export interface IntrospectionOptions {
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
