import { Agent, type AgentDefinition, type Identity } from '#core';
import { AuthRule } from './authenticator.js';
import {
  type Credentials,
  headerOf,
  isDirectLoopback,
  presentsCredential,
  TrustedNetworks,
} from './credentials.js';

/** Accepts callers of this machine without a credential. A wrong credential is refused, not ignored. */
export class AnonymousRule extends AuthRule {
  /** @param otherCredentials additional header names that other rules treat as credentials */
  constructor(
    private readonly shape: AgentDefinition,
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
  /**
   * Header with the subject of the certificate that the proxy verified. The proxy must strip this header from client
   * requests.
   */
  readonly header: string;
  /** Header and value with which the proxy confirms the verification. Default: not required. */
  readonly verified?: { readonly header: string; readonly value: string };
  /** Trusted peers: addresses and networks. */
  readonly trustedProxies: readonly string[];
  /** Full subjects as the proxy writes them. Each is a caller of its own. */
  readonly subjects: readonly string[];
}

/** Accepts callers whose certificate a trusted proxy has verified. The header is ignored from any other peer. */
export class ClientCertificateRule extends AuthRule {
  private readonly proxies: TrustedNetworks;
  private readonly subjects: ReadonlySet<string>;

  /** @throws TypeError naming the proxy that is not an address */
  constructor(
    private readonly options: ClientCertificateOptions,
    private readonly shape: AgentDefinition,
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
