import { Logger } from '@nestjs/common';
import { timingSafeEqual } from 'node:crypto';
import {
  Agent,
  type AgentDefinition,
  type Identity,
  type ImpersonationOrder,
  sessionIdentity,
  toAgentOptions,
  Unauthorized,
} from '#core';
import { type Impersonation, ImpersonationError, type PrincipalDirectory } from '#data';
import { AuthRule } from './authenticator.js';
import {
  type Credentials,
  readHeader,
  isDirectLoopback,
  readKeyHeader,
  readSessionHeader,
  listShownCredentials,
  remoteNetwork,
  TrustedNetworks,
} from './credentials.js';
import { computeDigest, type KeyHash, slowComparisons } from './key-hash.js';
import type { Admission } from './oauth/grants.js';

/** Characters. A longer text is not compared slowly. */
const MAX_KEY = 1_024;

const SIGNED_TOKEN = /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/;

/** A shared key, of which only a hash is kept. */
export class ApiKeyRule extends AuthRule {
  override readonly keyDigest: string | undefined;
  private readonly principal: string;

  constructor(
    private readonly known: KeyHash,
    private readonly definition: AgentDefinition,
    private readonly identity: Identity,
  ) {
    super();
    // The principal of a key is the same in clear text and as a digest. For a slow hash, a digest of the key would help guessing it.
    const digest = (known.kind === 'sha256' ? known.digest : computeDigest(known.text)).toString('hex');
    this.keyDigest = known.kind === 'sha256' ? digest : undefined;
    this.principal = `key:${digest.slice(0, 16)}`;
  }

  /** @throws AuthenticationUnavailable while too many unknown keys wait for a slow comparison */
  recognise(credentials: Credentials, recognisedElsewhere = false): Promise<Agent | null> | Agent | null {
    const key = this.readKey(credentials);
    if (key === undefined) return null;
    const { known } = this;
    if (known.kind === 'sha256')
      return timingSafeEqual(computeDigest(key), known.digest) ? this.createAgent() : null;
    const network = remoteNetwork(credentials.remoteAddress);
    return slowComparisons
      .matches(key, known, { network, recognisedElsewhere })
      .then((matches) => (matches ? this.createAgent() : null));
  }

  override isSettled(credentials: Credentials): boolean {
    const key = this.readKey(credentials);
    return this.known.kind === 'sha256' || key === undefined || slowComparisons.isKnown(key, this.known);
  }

  /** The key to compare; undefined when the credential cannot belong to this rule. */
  private readKey(credentials: Credentials): string | undefined {
    const key = readKeyHeader(credentials);
    // A signed token belongs to another rule, and every new one would cost a slow comparison.
    const isOther =
      this.known.kind === 'scrypt' && (key === undefined || key.length > MAX_KEY || SIGNED_TOKEN.test(key));
    return isOther ? undefined : key;
  }

  private createAgent(): Agent {
    const { definition, identity, principal } = this;
    return new Agent({ definition, identity, principal });
  }
}

/** Accepts callers of this machine without a credential. A wrong credential is refused, not ignored. */
export class AnonymousRule extends AuthRule {
  /** @param otherCredentials additional header names that other rules treat as credentials */
  constructor(
    private readonly definition: AgentDefinition,
    private readonly identity: Identity,
    private readonly otherCredentials: readonly string[] = [],
  ) {
    super();
  }

  recognise(credentials: Credentials): Agent | null {
    const shown = listShownCredentials(credentials, this.otherCredentials);
    if (shown.length > 0 || !isDirectLoopback(credentials)) return null;
    return new Agent({
      definition: this.definition,
      identity: this.identity,
      principal: `anonymous:${this.definition.name}`,
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
    private readonly definition: AgentDefinition,
    private readonly identity: Identity,
  ) {
    super();
    this.proxies = new TrustedNetworks(options.trustedProxies);
    this.subjects = new Set(options.subjects);
  }

  recognise(credentials: Credentials): Agent | null {
    const { header, verified } = this.options;
    const subject = readHeader(credentials, header.toLowerCase());
    if (subject === undefined || !this.subjects.has(subject)) return null;
    if (!this.proxies.has(credentials.remoteAddress)) return null;
    if (verified && readHeader(credentials, verified.header.toLowerCase()) !== verified.value) return null;
    return new Agent({
      definition: this.definition,
      identity: this.identity,
      principal: `certificate:${subject}`,
    });
  }
}

/** Looks up the user of a session token. */
export type SessionOwners = Pick<PrincipalDirectory, 'ownerOfSession'>;

async function createAgent(
  token: string,
  owners: SessionOwners,
  {
    definition,
    tenantId,
    keyName = null,
  }: Pick<Agent, 'definition'> & Partial<Pick<Agent, 'tenantId' | 'keyName'>>,
): Promise<Agent> {
  const owner = await owners.ownerOfSession(token);
  if (owner === null) throw new Unauthorized('invalid session token');
  return new Agent({
    definition,
    identity: sessionIdentity(token),
    principal: `user:${owner.userId}`,
    keyName,
    ...(tenantId !== undefined && { tenantId }),
  });
}

/** `X-Parse-Session-Token`: a signed-in user, who reads with that user's rights. */
export class ParseSessionRule extends AuthRule {
  constructor(
    private readonly definition: AgentDefinition,
    private readonly owners: SessionOwners,
  ) {
    super();
  }

  async recognise(credentials: Credentials): Promise<Agent | null> {
    const token = readSessionHeader(credentials);
    return token === undefined ? null : createAgent(token, this.owners, { definition: this.definition });
  }

  override knows(credentials: Credentials): Promise<boolean> {
    return isSomebodysSession(credentials, this.owners);
  }
}

/** Callers that another rule admits, each with another identity. */
class RefiningRule extends AuthRule {
  override readonly keyDigest: string | undefined;

  constructor(
    private readonly admission: AuthRule,
    private readonly refine: Admission,
  ) {
    super();
    this.keyDigest = admission.keyDigest;
  }

  async recognise(credentials: Credentials, recognisedElsewhere?: boolean): Promise<Agent | null> {
    const admitted = await this.admission.recognise(credentials, recognisedElsewhere);
    return admitted && this.refine(admitted, credentials);
  }

  override isSettled(credentials: Credentials): boolean {
    return this.admission.isSettled(credentials);
  }

  override knows(credentials: Credentials): Promise<boolean> {
    return this.admission.knows(credentials);
  }
}

/**
 * Callers that another rule admits and that read with the rights of their own session. Without a session they are
 * refused.
 */
export class CallerSessionRule extends RefiningRule {
  constructor(
    admission: AuthRule,
    private readonly owners: SessionOwners,
  ) {
    super(admission, (admitted, credentials) => withOwnSession(admitted, credentials, owners));
  }

  override async knows(credentials: Credentials): Promise<boolean> {
    return (await isSomebodysSession(credentials, this.owners)) || super.knows(credentials);
  }
}

/** Whether the request shows a valid session. */
export async function isSomebodysSession(credentials: Credentials, owners: SessionOwners): Promise<boolean> {
  const token = readSessionHeader(credentials);
  return token !== undefined && (await owners.ownerOfSession(token)) !== null;
}

/** The same caller with the rights of its session. @throws Unauthorized without a session */
export function withOwnSession(
  admitted: Agent,
  credentials: Credentials,
  owners: SessionOwners,
): Promise<Agent> {
  const token = readSessionHeader(credentials);
  if (token === undefined) throw new Unauthorized('no session token');
  return createAgent(token, owners, admitted);
}

/** Finds the session for a configured impersonation. */
export type ImpersonatedSessions = Pick<Impersonation, 'tokenFor'>;

/** Callers that another rule admits and that act as the configured user. The request cannot choose the user. */
export class ImpersonatingRule extends RefiningRule {
  constructor(admission: AuthRule, order: ImpersonationOrder, sessions: ImpersonatedSessions) {
    super(admission, (admitted) => impersonate(order, admitted, sessions));
  }
}

const logger = new Logger('Impersonation');

/** The same caller, acting as the configured user. @throws Unauthorized when that user has no session */
export async function impersonate(
  order: ImpersonationOrder,
  agent: Agent,
  sessions: ImpersonatedSessions,
): Promise<Agent> {
  const token = await sessions.tokenFor(order).catch((error: unknown) => {
    if (!(error instanceof ImpersonationError)) throw error;
    // The caller receives only a refusal; the log contains the reason.
    logger.warn(error.message);
    throw new Unauthorized('no active session of the impersonated user');
  });
  return new Agent({
    ...toAgentOptions(agent),
    identity: sessionIdentity(token),
    impersonatedUserId: order.userId,
  });
}
