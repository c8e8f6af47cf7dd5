import type { AgentShapeOptions, IdentityOptions } from '#agent';
import type { ClientCertificateOptions, OAuthIssuer, TenantClaim, UserClaim } from '#auth';
import type { AgentLlmConfig } from './model-config.js';

/** With whose rights an agent reads (docs/configuration.md#identities). */
type IdentityConfig =
  | 'master'
  | { readonly session: 'caller' }
  | { readonly user: string; readonly label?: string }
  | (UserClaim & { readonly label?: string })
  | { readonly role: string; readonly label?: string }
  | { readonly impersonate: string; readonly mint?: boolean; readonly label?: string };

export interface AgentConfig
  extends Omit<AgentShapeOptions, 'rateLimiter' | 'tenantId' | 'impersonationLabel'>, IdentityOptions {
  readonly identity?: IdentityConfig;
  readonly tenantId?: string | number | null | TenantClaim;
  /** Of the language model when it speaks for this agent. Default: as `llm`. */
  readonly llm?: AgentLlmConfig;
}

/** Access tokens of one issuer (docs/oauth.md). */
export interface OAuthConfig extends OAuthIssuer {
  /** Scopes that lead to another agent than the rule's, from the least to the most. */
  readonly scopes?: Readonly<Record<string, string>>;
  /** Without all of them nobody is admitted. Default none. */
  readonly requiredScopes?: readonly string[];
  /** Asks what `parley revoke` took back. Default false. */
  readonly revocationList?: boolean;
}

export type AuthRuleConfig =
  | { readonly apiKey: string; readonly agent: string }
  | { readonly apiKeyHash: string; readonly agent: string }
  | { readonly clientCertificate: ClientCertificateOptions; readonly agent: string }
  | { readonly oauth: OAuthConfig; readonly agent: string }
  | { readonly parseSession: true; readonly agent: string }
  | { readonly anonymous: true; readonly agent: string };
