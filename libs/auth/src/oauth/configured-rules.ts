import { Inject, Injectable } from '@nestjs/common';
import { type AgentDefinition, type Identity, ServedAt } from '#core';
import { PrincipalDirectory } from '#data';
import { SharedState } from '#state';
import type { SessionOwners } from '../auth-rules.js';
import { type AuthVersion, AuthVersions, type DeclaredIssuer, type DeclaredRule } from '../auth-versions.js';
import type { TenantClaim } from './claims.js';
import { type Admission, Grant, type UserClaim } from './grants.js';
import { isTrustworthyUrl } from './issuer-request.js';
import { DEFAULT_ISSUER, type IssuerTrust, issuerTrust, oauthRule, type OAuthRule } from './oauth-rule.js';
import { ResourceDocuments } from './resource-metadata.js';
import { RevocationList } from './revocations.js';

type AuthConfig = AuthVersion['config'];

/** A named agent for callers with a token. */
export interface AgentOfTokens {
  readonly definition: AgentDefinition;
  readonly identity: Identity | UserClaim;
  readonly admission?: Admission;
  /** For an agent that reads with the session of its caller. */
  readonly sessionOwners?: SessionOwners;
  readonly tenantId?: string | number | null | TenantClaim;
}

/** The dependencies of `oauth` rules. */
@Injectable()
export class OAuthRules {
  /** Keyed by their dependencies: a configuration reload keeps the keys of its issuers. */
  private readonly trusts = new Map<string, IssuerTrust>();

  constructor(
    private readonly users: PrincipalDirectory,
    private readonly shared: SharedState,
  ) {}

  rule(
    { oauth, agent, name: keyName }: Extract<DeclaredRule, { readonly oauth: unknown }>,
    agentOf: (name: string) => AgentOfTokens,
  ): OAuthRule {
    let sessionOwners: SessionOwners | undefined;
    const grant = (name: string) => {
      const named = agentOf(name);
      sessionOwners ??= named.sessionOwners;
      return this.grant(named, keyName);
    };
    const {
      issuer,
      clockSkew = DEFAULT_ISSUER.clockSkew,
      requiredScopes = [],
      scopes = {},
      revocationList = false,
    } = oauth;
    const steps = Object.entries(scopes).map(([scope, name]) => [scope, grant(name)] as const);
    const grants = { required: requiredScopes, base: grant(agent), steps };
    return oauthRule(oauth, {
      grants,
      sessionOwners,
      revocations: revocationList ? [new RevocationList(issuer, this.shared.revocations, clockSkew)] : [],
      trust: this.trustOf(oauth),
    });
  }

  /** Keys and documents of an issuer, shared by all rules. */
  trustOf(oauth: DeclaredIssuer): IssuerTrust {
    const key = JSON.stringify([oauth.issuer, oauth.jwksUri]);
    let trust = this.trusts.get(key);
    if (!trust) this.trusts.set(key, (trust = issuerTrust(oauth)));
    return trust;
  }

  private grant({ tenantId, definition, identity, admission }: AgentOfTokens, keyName?: string): Grant {
    const tenant = typeof tenantId === 'object' && tenantId !== null ? tenantId : undefined;
    return new Grant({ definition, identity, admission, users: this.users, tenant, keyName });
  }
}

const oauthOf = ({ auth }: AuthConfig): DeclaredIssuer[] =>
  auth.flatMap((rule) => ('oauth' in rule ? [rule.oauth] : []));

/** The values of an audience that can be the URL of a service. */
export function resourceUrls(audience: unknown): string[] {
  const all: unknown[] = Array.isArray(audience) ? audience : [audience];
  return all.filter((one): one is string => typeof one === 'string' && isResourceUrl(one));
}

export function isResourceUrl(text: string): boolean {
  return isTrustworthyUrl(text) && !/[?"\\\s]/.test(text);
}

/** The public URL of the service; null where no tokens are accepted. */
export function resourceUrlOf(config: AuthConfig): string | null {
  const [first] = oauthOf(config);
  if (!first) return null;
  const url = config.server.publicUrl ?? resourceUrls(first.audience)[0];
  // The configuration check requires one of them.
  if (url === undefined) throw new Error('no URL of the protected resource');
  return url.replace(/\/$/, '');
}

/** Scopes that every token needs, from any issuer. */
export function requiredScopesOf(config: AuthConfig): string[] {
  return [...new Set(oauthOf(config).flatMap(({ requiredScopes = [] }) => requiredScopes))];
}

/** OAuth documents for clients without a token; null where no tokens are accepted. */
function resourceDocumentsOf(
  config: AuthConfig,
  rules: OAuthRules,
  servedAt: readonly string[],
): ResourceDocuments | null {
  const resource = resourceUrlOf(config);
  if (resource === null) return null;
  return new ResourceDocuments({
    resource,
    issuers: oauthOf(config).map((oauth) => ({
      issuer: oauth.issuer,
      documents: rules.trustOf(oauth).documents,
    })),
    scopes: requiredScopesOf(config),
    servedAt,
  });
}

/** The OAuth documents of the served configuration version. */
@Injectable()
export class CurrentDocuments {
  private made: { readonly config: AuthConfig; readonly documents: ResourceDocuments | null } | null = null;

  constructor(
    @Inject(AuthVersions) private readonly versions: AuthVersions,
    private readonly rules: OAuthRules,
    @Inject(ServedAt) private readonly servedAt: Pick<ServedAt, 'endpoints'>,
  ) {}

  /** Null where no tokens are accepted. */
  get documents(): ResourceDocuments | null {
    const { config } = this.versions.current;
    if (this.made?.config !== config)
      this.made = { config, documents: resourceDocumentsOf(config, this.rules, this.servedAt.endpoints) };
    return this.made.documents;
  }
}
