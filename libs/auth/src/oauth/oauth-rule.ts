import type { Agent } from '#core';
import { AuthRule, type StepUp } from '../authenticator.js';
import { bearerToken, type Credentials } from '../credentials.js';
import { InsufficientScope, InvalidToken } from '../errors.js';
import { isSomebodysSession, type SessionOwners } from '../auth-rules.js';
import { type ClaimPath, toPrincipal, readScopes } from './claims.js';
import { ScopedGrants, type ScopedGrantsOptions } from './grants.js';
import { IssuerDocuments, KeyRing } from './issuer-metadata.js';
import { Introspection, type Revocations } from './revocations.js';
import { type Algorithm, ALGORITHMS, TokenVerifier } from './token-verifier.js';

/** Configuration of one issuer's tokens (docs/operations/oauth.md). */
export interface OAuthIssuer {
  /** Exactly the `iss` of its tokens. */
  readonly issuer: string;
  /** Accepted audiences; a token must name one of them. */
  readonly audience: string | readonly string[];
  /** Default: from the issuer's metadata. */
  readonly jwksUri?: string;
  /** Default: all asymmetric algorithms. */
  readonly algorithms?: readonly Algorithm[];
  /** Tolerated clock difference in seconds. Default 30. */
  readonly clockSkew?: number;
  /** Default: `scope`, else `scp`. */
  readonly scopeClaim?: ClaimPath;
  /** Asks the issuer whether a token is still active. Default: no introspection. */
  readonly introspection?: {
    /** Default: from the issuer's metadata. */
    readonly endpoint?: string;
    readonly clientId: string;
    readonly clientSecret: string;
    /** Seconds that a positive answer is cached. Default 5. */
    readonly cache?: number;
  };
}

export const DEFAULT_ISSUER = Object.freeze({ clockSkew: 30 });

/** Seconds that known keys are used while the issuer is unreachable. */
const MAX_KEY_OUTAGE = 3600;

type OAuthGrants = ScopedGrantsOptions;

/**
 * Metadata and keys of an issuer. They outlive the rules of one configuration, so that a reload does not start with
 * an outage.
 */
export interface IssuerTrust {
  readonly documents: IssuerDocuments;
  readonly keys: KeyRing;
}

type TrustOptions = Pick<OAuthIssuer, 'issuer' | 'jwksUri'>;

export function issuerTrust({ issuer, jwksUri }: TrustOptions): IssuerTrust {
  const documents = new IssuerDocuments(issuer);
  const keys = new KeyRing({
    jwksUri: () => (jwksUri === undefined ? documents.endpoint('jwks_uri') : Promise.resolve(jwksUri)),
    outage: MAX_KEY_OUTAGE,
  });
  return { documents, keys };
}

interface OAuthRuleDependencies {
  readonly grants: OAuthGrants;
  /** Looks up sessions, where agents of tokens read with their callers' sessions. Default: none. */
  readonly sessionOwners?: SessionOwners | undefined;
  /** Checked in addition to the issuer. Default none. */
  readonly revocations?: readonly Revocations[];
  /** Default: new, without metadata and keys. */
  readonly trust?: IssuerTrust;
}

export function oauthRule(
  options: OAuthIssuer,
  { grants, sessionOwners, revocations = [], trust = issuerTrust(options) }: OAuthRuleDependencies,
): OAuthRule {
  const { issuer, audience, introspection } = options;
  const { documents, keys } = trust;
  const asked = introspection && {
    endpoint: () =>
      introspection.endpoint === undefined
        ? documents.endpoint('introspection_endpoint')
        : Promise.resolve(introspection.endpoint),
    clientId: introspection.clientId,
    clientSecret: introspection.clientSecret,
    cache: introspection.cache ?? 5,
  };
  return new OAuthRule({
    issuer,
    documents,
    grants: new ScopedGrants(grants),
    scopeClaim: options.scopeClaim,
    sessionOwners,
    verifier: new TokenVerifier({
      issuer,
      audiences: typeof audience === 'string' ? [audience] : audience,
      algorithms: options.algorithms ?? ALGORITHMS,
      clockSkew: options.clockSkew ?? DEFAULT_ISSUER.clockSkew,
      keys,
    }),
    revocations: [...(asked ? [new Introspection(asked)] : []), ...revocations],
  });
}

interface OAuthRuleOptions {
  readonly issuer: string;
  readonly verifier: TokenVerifier;
  readonly grants: ScopedGrants;
  readonly documents: IssuerDocuments;
  /** Default: `scope`, else `scp`. */
  readonly scopeClaim?: ClaimPath | undefined;
  /** Looks up sessions, where agents of tokens read with their callers' sessions. Default: none. */
  readonly sessionOwners?: SessionOwners | undefined;
  /** All are checked. Default: a token is valid until it expires. */
  readonly revocations?: readonly Revocations[];
}

const NO_STEP_UPS: readonly StepUp[] = [];

/** Accepts access tokens of one issuer, from the `Authorization` header only. */
export class OAuthRule extends AuthRule {
  private readonly above = new WeakMap<Agent, readonly StepUp[]>();

  constructor(private readonly options: OAuthRuleOptions) {
    super();
  }

  get issuer(): string {
    return this.options.issuer;
  }

  get documents(): IssuerDocuments {
    return this.options.documents;
  }

  get requiredScopes(): readonly string[] {
    return this.options.grants.required;
  }

  /** The agents that more scopes would give, nearest first. */
  override stepsAbove(agent: Agent): readonly StepUp[] {
    return this.above.get(agent) ?? NO_STEP_UPS;
  }

  /**
   * @throws InvalidToken for an invalid token of this issuer
   * @throws InsufficientScope for a valid one without the required scopes
   * @throws AuthenticationUnavailable
   */
  async recognise(credentials: Credentials): Promise<Agent | null> {
    const token = bearerToken(credentials);
    const { issuer, verifier, grants, revocations = [], scopeClaim } = this.options;
    if (token === undefined || !verifier.concerns(token)) return null;
    const claims = await verifier.verify(token);
    for (const revocation of revocations) await revocation.assertHolds(token, claims);
    const scopes = readScopes(claims, scopeClaim);
    if (grants.lacksRequired(scopes)) throw new InsufficientScope(grants.required);
    const agent = await grants.findGrant(scopes).admit(claims, toPrincipal(issuer, claims), credentials);
    const above = grants.above(scopes);
    if (above.length > 0) this.above.set(agent, above);
    return agent;
  }

  /**
   * True for a valid token of this issuer, whatever its scopes, and for a session where agents of tokens read with
   * one.
   */
  override async knows(credentials: Credentials): Promise<boolean> {
    const token = bearerToken(credentials);
    const { verifier, revocations = [], sessionOwners } = this.options;
    if (token === undefined)
      return sessionOwners !== undefined && isSomebodysSession(credentials, sessionOwners);
    try {
      if (!verifier.concerns(token)) return false;
      const claims = await verifier.verify(token);
      for (const revocation of revocations) await revocation.assertHolds(token, claims);
      return true;
    } catch (error) {
      if (error instanceof InvalidToken) return false;
      throw error;
    }
  }
}
