import type { ResolveHost } from '#agent';
import { AuthenticationUnavailable } from '../authentication-faults.js';
import { askForJson, isLoopbackUrl, isTrustworthyUrl } from './bounded-json.js';
import { KeptFresh } from './kept-fresh.js';

export type IssuerDocument = Readonly<Record<string, unknown>>;

/** Milliseconds. */
const FRESHNESS = { refreshAfter: 600_000, usableFor: 86_400_000, cooldown: 10_000 };

/** Where an issuer may describe itself: RFC 8414, then OpenID Connect in both places that are in use. */
export function wellKnownUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  return [
    ...new Set([
      `${origin}/.well-known/oauth-authorization-server${path}`,
      `${origin}/.well-known/openid-configuration${path}`,
      `${origin}${path}/.well-known/openid-configuration`,
    ]),
  ];
}

/** What an issuer says of itself, believed only where it names itself exactly as it is configured. */
export class IssuerDocuments {
  private readonly document: KeptFresh<IssuerDocument>;

  /** @param resolve default: as the system resolves names */
  constructor(
    private readonly issuer: string,
    private readonly resolve?: ResolveHost,
  ) {
    this.document = new KeptFresh(() => this.discover(), FRESHNESS);
  }

  /** @throws AuthenticationUnavailable */
  current(): Promise<IssuerDocument> {
    return this.document.current();
  }

  /** One of its addresses. @throws AuthenticationUnavailable also when there is none that can be used */
  async endpoint(name: 'jwks_uri' | 'introspection_endpoint'): Promise<string> {
    const url = (await this.current())[name];
    // Somebody else's document does not lead to services of this machine.
    const isOwn = typeof url === 'string' && (!isLoopbackUrl(url) || isLoopbackUrl(this.issuer));
    if (isOwn && isTrustworthyUrl(url)) return url;
    throw new AuthenticationUnavailable(`${this.issuer} names no ${name} that can be asked`);
  }

  private async discover(): Promise<IssuerDocument> {
    let failure = 'no document';
    for (const url of wellKnownUrls(this.issuer)) {
      try {
        const { status, value } = await askForJson(url, { resolve: this.resolve });
        if (status === 200 && value?.['issuer'] === this.issuer) return value;
        failure = status === 200 ? 'a document of another issuer' : `status ${status}`;
      } catch (error) {
        if (!(error instanceof AuthenticationUnavailable)) throw error;
        failure = error.cause;
      }
    }
    throw new AuthenticationUnavailable(`${this.issuer} does not describe itself: ${failure}`);
  }
}
