import { Injectable, Module } from '@nestjs/common';
import {
  type AgentDefinition,
  CoreModule,
  provideFromInstance,
  provideReplaceable,
  sessionIdentity,
} from '#core';
import { AuditModule, AuditSink } from '#audit';
import { Impersonation, PrincipalDirectory, StoresModule } from '#data';
import { StateModule, SuspendedAgents } from '#state';
import {
  impersonate,
  AnonymousRule,
  ApiKeyRule,
  CallerSessionRule,
  ClientCertificateRule,
  ImpersonatingRule,
  ParseSessionRule,
  withOwnSession,
} from './auth-rules.js';
import { type AgentIdentity, type AuthVersion, AuthVersions, type DeclaredRule } from './auth-versions.js';
import {
  Authenticator,
  type AuthRule,
  followVersions,
  RecordedAuthenticator,
  RuleAuthenticator,
} from './authenticator.js';
import {
  type AgentOfTokens,
  CurrentDocuments,
  OAuthRules,
  requiredScopesOf,
  resourceUrlOf,
} from './oauth/configured-rules.js';
import { hashPlainKey, parseKeyHash } from './key-hash.js';
import { NamedRule } from './named-rule.js';
import type { Admission } from './oauth/grants.js';
import { BearerChallenge, toMetadataUrl } from './oauth/resource-metadata.js';

/** Used until a session replaces it; the empty token is always refused. */
const NO_SESSION = sessionIdentity('');

type OtherRule = Exclude<DeclaredRule, { readonly oauth: unknown } | { readonly parseSession: true }>;

function createAdmission(
  rule: OtherRule,
  definition: AgentDefinition,
  identity: AgentIdentity,
  otherCredentials: readonly string[],
): AuthRule {
  const fixed =
    identity === 'callerSession' || identity.kind === 'impersonate' || identity.kind === 'claimedUser'
      ? NO_SESSION
      : identity;
  if ('apiKey' in rule) return new ApiKeyRule(hashPlainKey(rule.apiKey), definition, fixed);
  if ('apiKeyHash' in rule) return new ApiKeyRule(parseKeyHash(rule.apiKeyHash), definition, fixed);
  if ('clientCertificate' in rule)
    return new ClientCertificateRule(rule.clientCertificate, definition, fixed);
  return new AnonymousRule(definition, fixed, otherCredentials);
}

/** The same rule, with the name and the end of its credential. */
function withName(admission: AuthRule, { name, expires }: DeclaredRule): AuthRule {
  if (name === undefined) return admission;
  return new NamedRule(admission, { name, ...(expires !== undefined && { expires }) });
}

/** The admission of a token's caller whose agent reads with a session. */
function admissionOf(
  identity: AgentIdentity,
  owners: PrincipalDirectory,
  impersonation: Impersonation,
): Pick<AgentOfTokens, 'identity' | 'admission' | 'sessionOwners'> {
  if (identity === 'callerSession') {
    const admission: Admission = (agent, credentials) => withOwnSession(agent, credentials, owners);
    return { identity: NO_SESSION, admission, sessionOwners: owners };
  }
  if (identity.kind !== 'impersonate') return { identity };
  return { identity: NO_SESSION, admission: (agent) => impersonate(identity, agent, impersonation) };
}

function createAuthenticator(
  { config, agents, identities }: AuthVersion,
  directory: PrincipalDirectory,
  impersonation: Impersonation,
  oauth: OAuthRules,
): Authenticator {
  const named = (agent: string) => {
    const definition = agents.get(agent);
    const identity = identities.get(agent);
    // The configuration check refuses a rule whose agent does not exist.
    if (!definition || !identity) throw new Error(`no agent named '${agent}'`);
    return { definition, identity };
  };
  const agentOfTokens = (agent: string): AgentOfTokens => {
    const { definition, identity } = named(agent);
    return {
      definition,
      ...admissionOf(identity, directory, impersonation),
      tenantId: config.agents[agent]?.tenantId,
    };
  };
  const headers = config.auth.flatMap((rule) =>
    'clientCertificate' in rule ? [rule.clientCertificate.header.toLowerCase()] : [],
  );
  const rules = config.auth.map((rule): AuthRule => {
    if ('oauth' in rule) return oauth.rule(rule, agentOfTokens);
    const { definition, identity } = named(rule.agent);
    if ('parseSession' in rule) return withName(new ParseSessionRule(definition, directory), rule);
    const admission = withName(createAdmission(rule, definition, identity, headers), rule);
    if (identity === 'callerSession') return new CallerSessionRule(admission, directory);
    return identity.kind === 'impersonate'
      ? new ImpersonatingRule(admission, identity, impersonation)
      : admission;
  });
  const resource = resourceUrlOf(config);
  const challenge =
    resource === null ? null : new BearerChallenge(toMetadataUrl(resource), requiredScopesOf(config));
  return new RuleAuthenticator(rules, { bearer: challenge, otherCredentials: headers });
}

/** Admits callers by the rules of the served configuration version; every refusal is recorded. */
@Injectable()
class ConfiguredAuthenticator extends RecordedAuthenticator {
  constructor(
    versions: AuthVersions,
    directory: PrincipalDirectory,
    impersonation: Impersonation,
    oauth: OAuthRules,
    audit: AuditSink,
    suspended: SuspendedAgents,
  ) {
    const rulesOf = (version: AuthVersion) => createAuthenticator(version, directory, impersonation, oauth);
    super(followVersions(versions, rulesOf), audit, suspended);
  }
}

/** Authentication as the configuration declares it. */
@Module({
  imports: [CoreModule, StateModule, StoresModule, AuditModule],
  providers: [
    provideFromInstance(AuthVersions),
    OAuthRules,
    CurrentDocuments,
    ConfiguredAuthenticator,
    provideReplaceable(Authenticator, ConfiguredAuthenticator),
  ],
  exports: [Authenticator, CurrentDocuments],
})
export class AuthModule {}
