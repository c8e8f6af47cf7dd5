import {
  Client,
  type OAuthClientInformationMixed,
  type OAuthClientProvider,
  type OAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';

export const REDIRECT = 'http://127.0.0.1/callback';

/** A browser that follows redirects with its cookies until it is sent back to the host. */
class Browser {
  private readonly cookies = new Map<string, string>();

  async visit(start: URL): Promise<URL> {
    let url = start;
    for (let hops = 0; hops < 20; hops++) {
      const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
      const response = await fetch(url, { redirect: 'manual', headers: cookie ? { cookie } : {} });
      for (const set of response.headers.getSetCookie()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
        if (name !== undefined && value !== undefined) this.cookies.set(name, value);
      }
      const location = response.headers.get('location');
      if (location === null) throw new Error(`stuck at ${url.href}: ${await response.text()}`);
      url = new URL(location, url);
      if (url.href.startsWith(REDIRECT)) return url;
    }
    throw new Error('too many redirects');
  }
}

/** What a host with a person in front of it gives the official client. */
export class PersonsProvider implements OAuthClientProvider {
  readonly redirectUrl = REDIRECT;
  readonly clientMetadata = { redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none' };
  /** Scopes asked for at the authorization server, in turn. */
  readonly askedFor: string[] = [];
  private readonly browser = new Browser();
  private saved: OAuthTokens | undefined;
  private verifier = '';
  private code: string | null = null;
  private issuer: string | undefined;

  clientInformation(): OAuthClientInformationMixed {
    return { client_id: 'host' };
  }
  tokens(): OAuthTokens | undefined {
    return this.saved;
  }
  saveTokens(tokens: OAuthTokens): void {
    this.saved = tokens;
  }
  saveCodeVerifier(verifier: string): void {
    this.verifier = verifier;
  }
  codeVerifier(): string {
    return this.verifier;
  }
  async redirectToAuthorization(url: URL): Promise<void> {
    this.askedFor.push(url.searchParams.get('scope') ?? '');
    const back = await this.browser.visit(url);
    this.code = back.searchParams.get('code');
    this.issuer = back.searchParams.get('iss') ?? undefined;
    if (this.code === null) throw new Error(`no code: ${back.search}`);
  }

  /** Runs something that may send the person to the authorization server first, and again once it did. */
  async signedIn<T>(transport: () => StreamableHTTPClientTransport, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || this.code === null) throw error;
      const { code } = this;
      this.code = null;
      const back = new URLSearchParams({ code, ...(this.issuer !== undefined && { iss: this.issuer }) });
      await transport().finishAuth(back);
      return work();
    }
  }
}

/** The official client, connected. */
export async function connect(
  url: string,
  authProvider: OAuthClientProvider,
  mode: 'auto' | 'legacy' = 'auto',
) {
  const make = () => new StreamableHTTPClientTransport(new URL(url), { authProvider });
  let transport = make();
  let client!: Client;
  const open = async () => {
    client = new Client({ name: 'scenario', version: '1.0.0' }, { versionNegotiation: { mode } } as never);
    await client.connect(transport);
  };
  const provider = authProvider instanceof PersonsProvider ? authProvider : null;
  if (!provider) await open();
  else
    await provider.signedIn(() => {
      const used = transport;
      transport = make();
      return used;
    }, open);
  return { client, transport: () => transport };
}
