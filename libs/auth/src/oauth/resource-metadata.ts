import { AuthenticationUnavailable } from '../errors.js';
import type { IssuerDocument, IssuerDocuments } from './issuer-metadata.js';

interface ProtectedResource {
  /** Canonical URL of the MCP endpoint as clients know it, without a trailing slash. */
  readonly resource: string;
  /** Issuers, in the order of the rules. */
  readonly issuers: readonly { readonly issuer: string; readonly documents: IssuerDocuments }[];
  /** What every caller needs. */
  readonly scopes: readonly string[];
  /** Paths that MCP is served at in this process, which a proxy may call otherwise. */
  readonly servedAt: readonly string[];
}

const RESOURCE = '/.well-known/oauth-protected-resource';
const SERVER = '/.well-known/oauth-authorization-server';

const pathOf = (url: string) => new URL(url).pathname.replace(/\/$/, '');

/** RFC 9728: between host and path. */
export function metadataUrlOf(resource: string): string {
  return `${new URL(resource).origin}${RESOURCE}${pathOf(resource)}`;
}

/** Said by an issuer about itself and of no use to anybody here, or about to mislead: a mirror repeats only what is needed. */
const MIRRORED = [
  'issuer',
  'authorization_endpoint',
  'token_endpoint',
  'registration_endpoint',
  'revocation_endpoint',
  'jwks_uri',
  'scopes_supported',
  'response_types_supported',
  'response_modes_supported',
  'grant_types_supported',
  'token_endpoint_auth_methods_supported',
  'code_challenge_methods_supported',
  'client_id_metadata_document_supported',
  'authorization_response_iss_parameter_supported',
] as const;

/** The documents that clients find their authorization server by. They are for everybody and hold nothing about anybody. */
export class ResourceDocuments {
  constructor(private readonly resource: ProtectedResource) {}

  /**
   * @param path of the request
   * @returns null when it is none of these documents
   * @throws AuthenticationUnavailable when the issuer cannot be asked
   */
  async at(path: string): Promise<IssuerDocument | null> {
    const asked = path.replace(/\/$/, '');
    const { resource, servedAt } = this.resource;
    const places = new Set(['', pathOf(resource), ...servedAt.map((path) => path.replace(/\/$/, ''))]);
    if (asked.startsWith(RESOURCE) && places.has(asked.slice(RESOURCE.length))) return this.metadata();
    if (asked.startsWith(SERVER) && places.has(asked.slice(SERVER.length))) return this.mirror();
    return null;
  }

  private metadata(): IssuerDocument {
    const { resource, issuers, scopes } = this.resource;
    return {
      resource,
      authorization_servers: issuers.map(({ issuer }) => issuer),
      bearer_methods_supported: ['header'],
      ...(scopes.length > 0 && { scopes_supported: scopes }),
      resource_name: 'Parley',
    };
  }

  /** For clients of 2025-03-26, which look for the authorization server where the resource is: the first issuer's own words. */
  private async mirror(): Promise<IssuerDocument> {
    const [first] = this.resource.issuers;
    if (!first) throw new AuthenticationUnavailable('no issuer');
    const document = await first.documents.current();
    return Object.fromEntries(MIRRORED.flatMap((name) => (name in document ? [[name, document[name]]] : [])));
  }
}

/** What a client without a good token is told (RFC 6750, RFC 9728): where to find out how to get one, and with which scopes. */
export class BearerChallenge {
  /**
   * @param metadataUrl of the protected resource's metadata
   * @param scopes that every caller needs
   */
  constructor(
    private readonly metadataUrl: string,
    private readonly scopes: readonly string[],
  ) {}

  /** To whoever showed no token. */
  unknown(): string {
    return this.challenge([], this.scopes);
  }

  invalid(): string {
    return this.challenge(['error="invalid_token"'], this.scopes);
  }

  /** @param scopes all that the operation needs */
  insufficient(scopes: readonly string[]): string {
    return this.challenge(['error="insufficient_scope"'], scopes);
  }

  // Scope names and the address come from the configuration, which admits nothing that would end a quoted text.
  private challenge(error: readonly string[], scopes: readonly string[]): string {
    const scope = scopes.length > 0 ? [`scope="${scopes.join(' ')}"`] : [];
    return `Bearer ${[...error, ...scope, `resource_metadata="${this.metadataUrl}"`].join(', ')}`;
  }
}
