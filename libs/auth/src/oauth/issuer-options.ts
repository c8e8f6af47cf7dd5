import type { SessionOwners } from '../session-owners.js';
import type { ClaimPath } from './claim-values.js';
import { Introspection } from './introspection.js';
import { IssuerDocuments } from './issuer-documents.js';
import { KeyRing } from './key-ring.js';
import { OAuthRule } from './oauth-rule.js';
import type { Revocations } from './revocations.js';
import { ScopeLadder, type ScopeLadderOptions } from './scope-ladder.js';
import { type Algorithm, ALGORITHMS, TokenVerifier } from './token-verifier.js';

/** How tokens of one issuer are judged (docs/oauth.md). */
export interface OAuthIssuer {
  /** Exactly as in its tokens. */
  readonly issuer: string;
  /** Whom tokens must be meant for, one of them. */
  readonly audience: string | readonly string[];
  /** Default: what the issuer says of itself. */
  readonly jwksUri?: string;
  /** Default: all that use key pairs. */
  readonly algorithms?: readonly Algorithm[];
  /** Seconds that clocks may differ. Default 30. */
  readonly clockSkew?: number;
  /** Characters. Default 8192. */
  readonly maxTokenLength?: number;
  /** Seconds that known keys serve on when the issuer is away. Default 3600. */
  readonly keyOutage?: number;
  /** Default: `scope`, else `scp`. */
  readonly scopeClaim?: ClaimPath;
  /** Asks the issuer whether a token still holds. Default: it is not asked. */
  readonly introspection?: {
    /** Default: what the issuer says of itself. */
    readonly endpoint?: string;
    readonly clientId: string;
    readonly clientSecret: string;
    /** Seconds that a yes is believed. Default 5. */
    readonly cache?: number;
  };
}

export const DEFAULT_ISSUER = Object.freeze({ clockSkew: 30, maxTokenLength: 8192, keyOutage: 3600 });

export type OAuthGrants = ScopeLadderOptions;

/** What is known of an issuer. Outlives the rules that use it, so that new rules do not begin with an outage. */
export interface IssuerTrust {
  readonly documents: IssuerDocuments;
  readonly keys: KeyRing;
}

export type TrustOptions = Pick<OAuthIssuer, 'issuer' | 'jwksUri' | 'keyOutage'>;

export function issuerTrust({
  issuer,
  jwksUri,
  keyOutage = DEFAULT_ISSUER.keyOutage,
}: TrustOptions): IssuerTrust {
  const documents = new IssuerDocuments(issuer);
  const keys = new KeyRing({
    jwksUri: () => (jwksUri === undefined ? documents.endpoint('jwks_uri') : Promise.resolve(jwksUri)),
    outage: keyOutage,
  });
  return { documents, keys };
}

export interface OAuthRuleParts {
  readonly grants: OAuthGrants;
  /** Where agents of tokens read with the sessions of their callers. Default: none does. */
  readonly sessionOwners?: SessionOwners | undefined;
  /** Asked besides the issuer. Default none. */
  readonly revocations?: readonly Revocations[];
  /** Default: nothing is known yet. */
  readonly trust?: IssuerTrust;
}

export function oauthRule(
  options: OAuthIssuer,
  { grants, sessionOwners, revocations = [], trust = issuerTrust(options) }: OAuthRuleParts,
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
    ladder: new ScopeLadder(grants),
    scopeClaim: options.scopeClaim,
    sessionOwners,
    verifier: new TokenVerifier({
      issuer,
      audiences: typeof audience === 'string' ? [audience] : audience,
      algorithms: options.algorithms ?? ALGORITHMS,
      clockSkew: options.clockSkew ?? DEFAULT_ISSUER.clockSkew,
      maxTokenLength: options.maxTokenLength ?? DEFAULT_ISSUER.maxTokenLength,
      keys,
    }),
    revocations: [...(asked ? [new Introspection(asked)] : []), ...revocations],
  });
}
