import type { Provider } from '@nestjs/common';
import type { AgentShape, Identity } from '#agent';
import {
  type Admission,
  AuthenticationUnavailable,
  ClaimedUsers,
  Grant,
  IssuerDocuments,
  oauthRule,
  type OAuthRule,
  ResourceDocuments,
  RevocationList,
  RevokedBook,
  type UserClaim,
  type UserField,
} from '#auth';
import type { SharedState, VersionedStore } from '#cluster';
import { ExpiringCache, RecordReader } from '#data';
import type { AgentConfig, AuthRuleConfig, OAuthConfig, ParleyConfig } from './config/config.js';
import { resourceUrls } from './config/oauth-faults.js';

/** A named agent as tokens lead to it. */
export interface AgentOfTokens {
  readonly shape: AgentShape;
  readonly identity: Identity | UserClaim;
  readonly admission?: Admission;
  readonly tenantId?: AgentConfig['tenantId'];
}

/** Users of the service's own store, believed as long as their roles are. */
class StoredUsers extends ClaimedUsers {
  private readonly known = new ExpiringCache<string | null>(30_000, 10_000, () => performance.now());

  constructor(private readonly reader: RecordReader) {
    super();
  }

  idOf(field: UserField, value: string): Promise<string | null> {
    return this.known.get(JSON.stringify([field, value]), () => this.find(field, value));
  }

  private async find(field: UserField, value: string): Promise<string | null> {
    const query = { className: '_User', where: { [field]: value }, keys: ['objectId'], limit: 2 };
    const operation = { maxTimeMS: 5_000, comment: 'parley:auth', signal: AbortSignal.timeout(6_000) };
    const rows = await this.reader.find(query, operation).catch((error: unknown) => {
      throw new AuthenticationUnavailable(`users: ${String((error as Error).name)}`);
    });
    const [user, another] = rows;
    return user && !another ? String(user['objectId']) : null;
  }
}

class SharedRevocations extends RevokedBook {
  constructor(private readonly store: VersionedStore) {
    super();
  }

  async until(name: string): Promise<number | null> {
    const record = await this.store.find(name).catch((error: unknown) => {
      throw new AuthenticationUnavailable(`revocations: ${String((error as Error).name)}`);
    });
    const before = record?.value['before'];
    return typeof before === 'number' ? before : null;
  }
}

/** What rules of kind `oauth` are made with. */
export class OAuthRules {
  private readonly users: ClaimedUsers;
  private readonly book: RevokedBook;

  constructor(reader: RecordReader, shared: SharedState) {
    this.users = new StoredUsers(reader);
    this.book = new SharedRevocations(shared.revocations);
  }

  rule(
    { oauth, agent }: Extract<AuthRuleConfig, { readonly oauth: unknown }>,
    agentOf: (name: string) => AgentOfTokens,
  ): OAuthRule {
    const grant = (name: string) => this.grant(agentOf(name));
    const { issuer, clockSkew = 30, requiredScopes = [], scopes = {}, revocationList = false } = oauth;
    const steps = Object.entries(scopes).map(([scope, name]) => [scope, grant(name)] as const);
    return oauthRule(
      oauth,
      { required: requiredScopes, base: grant(agent), steps },
      revocationList ? [new RevocationList(issuer, this.book, clockSkew)] : [],
    );
  }

  private grant({ tenantId, ...agent }: AgentOfTokens): Grant {
    const tenant = typeof tenantId === 'object' && tenantId !== null ? tenantId : undefined;
    return new Grant({ ...agent, users: this.users, tenant });
  }
}

const oauthOf = ({ auth }: ParleyConfig): OAuthConfig[] =>
  auth.flatMap((rule) => ('oauth' in rule ? [rule.oauth] : []));

/** The URL of the service as clients know it; null where no tokens are taken. */
export function resourceUrlOf(config: ParleyConfig): string | null {
  const [first] = oauthOf(config);
  if (!first) return null;
  const url = config.server.publicUrl ?? resourceUrls(first.audience)[0];
  // The configuration is refused without either.
  if (url === undefined) throw new Error('no URL of the protected resource');
  return url.replace(/\/$/, '');
}

/** What the least of all agents needs, whoever issued the token. */
export function requiredScopesOf(config: ParleyConfig): string[] {
  return [...new Set(oauthOf(config).flatMap(({ requiredScopes = [] }) => requiredScopes))];
}

/** Documents for clients that have no token yet; null where no tokens are taken. */
export function resourceDocumentsOf(config: ParleyConfig): ResourceDocuments | null {
  const resource = resourceUrlOf(config);
  if (resource === null) return null;
  return new ResourceDocuments({
    resource,
    issuers: oauthOf(config).map(({ issuer }) => ({ issuer, documents: new IssuerDocuments(issuer) })),
    scopes: requiredScopesOf(config),
    servedAt: config.server.path,
  });
}

export function oauthProviders(config: ParleyConfig, shared: SharedState): Provider[] {
  return [
    {
      provide: OAuthRules,
      useFactory: (reader: RecordReader) => new OAuthRules(reader, shared),
      inject: [RecordReader],
    },
    { provide: ResourceDocuments, useFactory: () => resourceDocumentsOf(config) },
  ];
}
