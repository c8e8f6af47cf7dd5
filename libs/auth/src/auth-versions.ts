import type { AgentDefinition, Identity, ImpersonationOrder } from '#core';
import type { TenantClaim } from './oauth/claims.js';
import type { UserClaim } from './oauth/grants.js';
import type { OAuthIssuer } from './oauth/oauth-rule.js';

/** With whose rights a named agent reads: always the same, those of the session its caller shows, a user's by order, or a user's by token. */
export type AgentIdentity = Identity | ImpersonationOrder | ClaimedUser | 'callerSession';

/** Those of the user that the caller's token names. */
interface ClaimedUser extends UserClaim {
  readonly kind: 'claimedUser';
}

/** Tokens of one issuer, and the agents that they lead to. */
export interface DeclaredIssuer extends OAuthIssuer {
  /** Default: none. */
  readonly requiredScopes?: readonly string[];
  /** Agents by scope, from the fewest to the most rights. Default: none. */
  readonly scopes?: Readonly<Record<string, string>>;
  /** Whether tokens are refused that the shared state lists as revoked. Default false. */
  readonly revocationList?: boolean;
}

/** The certificates of clients that a proxy verified. */
interface DeclaredCertificate {
  readonly header: string;
  readonly verified?: { readonly header: string; readonly value: string };
  readonly trustedProxies: readonly string[];
  readonly subjects: readonly string[];
}

/** A rule of authentication as it is declared: one credential, and the agent that its callers run as. */
export type DeclaredRule = {
  readonly agent: string;
  /** Of its credential, in records. Default: it has none. */
  readonly name?: string;
  /** A date, or a time in ISO 8601 with its zone. Default: its credential has no end. */
  readonly expires?: string;
} & (
  | { readonly apiKey: string }
  | { readonly apiKeyHash: string }
  | { readonly clientCertificate: DeclaredCertificate }
  | { readonly oauth: DeclaredIssuer }
  | { readonly parseSession: true }
  | { readonly anonymous: true }
);

/** What authentication reads of a version of the configuration. */
export interface AuthVersion {
  readonly config: {
    readonly auth: readonly DeclaredRule[];
    readonly server: { readonly publicUrl: string | null };
    readonly agents: Readonly<
      Record<string, { readonly tenantId?: string | number | null | TenantClaim } | undefined>
    >;
  };
  readonly agents: ReadonlyMap<string, AgentDefinition>;
  readonly identities: ReadonlyMap<string, AgentIdentity>;
}

/** The served version; each version is an object of its own. */
export abstract class AuthVersions {
  abstract readonly current: AuthVersion;
}
