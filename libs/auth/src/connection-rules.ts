import { Agent, type AgentShape, type Identity } from '#agent';
import { type Credentials, headerOf, isDirectLoopback, presentsCredential } from './credentials.js';
import { TrustedNetworks } from './networks.js';
import { AuthRule } from './rule-authenticator.js';

/** Callers on this machine without any credential. A wrong credential is refused rather than ignored. */
export class AnonymousRule extends AuthRule {
  /** @param otherCredentials names of headers, besides the usual ones, that other rules take for credentials */
  constructor(
    private readonly shape: AgentShape,
    private readonly identity: Identity,
    private readonly otherCredentials: readonly string[] = [],
  ) {
    super();
  }

  recognise(credentials: Credentials): Agent | null {
    if (presentsCredential(credentials, this.otherCredentials) || !isDirectLoopback(credentials)) return null;
    return new Agent({
      shape: this.shape,
      identity: this.identity,
      principal: `anonymous:${this.shape.name}`,
    });
  }

  override knows(): Promise<boolean> {
    return Promise.resolve(false);
  }
}

export interface ClientCertificateOptions {
  /** Header in which the proxy says whose certificate it verified; it must strip what clients send under that name. */
  readonly header: string;
  /** Header that must say that the proxy verified it, with that value. Default: none is asked for. */
  readonly verified?: { readonly header: string; readonly value: string };
  /** Peers that are believed: addresses and networks. */
  readonly trustedProxies: readonly string[];
  /** Whole subjects as the proxy writes them; each is a caller of its own. */
  readonly subjects: readonly string[];
}

/** Callers whose certificate a proxy in front has verified. From any other peer the header is worth nothing. */
export class ClientCertificateRule extends AuthRule {
  private readonly proxies: TrustedNetworks;
  private readonly subjects: ReadonlySet<string>;

  /** @throws TypeError naming a proxy that is no address */
  constructor(
    private readonly options: ClientCertificateOptions,
    private readonly shape: AgentShape,
    private readonly identity: Identity,
  ) {
    super();
    this.proxies = new TrustedNetworks(options.trustedProxies);
    this.subjects = new Set(options.subjects);
  }

  recognise(credentials: Credentials): Agent | null {
    const { header, verified } = this.options;
    const subject = headerOf(credentials, header.toLowerCase());
    if (subject === undefined || !this.subjects.has(subject)) return null;
    if (!this.proxies.has(credentials.remoteAddress)) return null;
    if (verified && headerOf(credentials, verified.header.toLowerCase()) !== verified.value) return null;
    return new Agent({ shape: this.shape, identity: this.identity, principal: `certificate:${subject}` });
  }
}
