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

export type OAuthGrants = ScopeLadderOptions;

/** @param revocations asked besides the issuer */
export function oauthRule(
  options: OAuthIssuer,
  grants: OAuthGrants,
  revocations: readonly Revocations[] = [],
): OAuthRule {
  const { issuer, audience, jwksUri, introspection } = options;
  const documents = new IssuerDocuments(issuer);
  const keys = new KeyRing({
    jwksUri: () => (jwksUri === undefined ? documents.endpoint('jwks_uri') : Promise.resolve(jwksUri)),
    outage: options.keyOutage ?? 3600,
  });
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
    verifier: new TokenVerifier({
      issuer,
      audiences: typeof audience === 'string' ? [audience] : audience,
      algorithms: options.algorithms ?? ALGORITHMS,
      clockSkew: options.clockSkew ?? 30,
      maxTokenLength: options.maxTokenLength ?? 8192,
      keys,
    }),
    revocations: [...(asked ? [new Introspection(asked)] : []), ...revocations],
  });
}
