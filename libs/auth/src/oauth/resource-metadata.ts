import { AuthenticationUnavailable } from '../errors.js';
import type { IssuerDocument, IssuerDocuments } from './issuer-metadata.js';

interface ProtectedResource {
  /** Canonical URL of the MCP endpoint for clients, without a trailing slash. */
  readonly resource: string;
  /** Issuers, in the order of the rules. */
  readonly issuers: readonly { readonly issuer: string; readonly documents: IssuerDocuments }[];
  /** Scopes that every caller needs. */
  readonly scopes: readonly string[];
  /** Paths of MCP in this process; a proxy may publish others. */
  readonly servedAt: readonly string[];
}

const RESOURCE = '/.well-known/oauth-protected-resource';
const SERVER = '/.well-known/oauth-authorization-server';

const readPath = (url: string) => new URL(url).pathname.replace(/\/$/, '');

/** RFC 9728: the well-known part stands between host and path. */
export function toMetadataUrl(resource: string): string {
  return `${new URL(resource).origin}${RESOURCE}${readPath(resource)}`;
}

/** Members that the mirror repeats. Others are not needed here and could mislead clients. */
const MIRRORED_MEMBERS = [
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

/** The public documents with which clients find the authorization server. They hold no data of callers. */
export class ResourceDocuments {
  constructor(private readonly resource: ProtectedResource) {}

  /**
   * @param path of the request
   * @returns null when the path is not one of these documents
   * @throws AuthenticationUnavailable when the issuer cannot be reached
   */
  async at(path: string): Promise<IssuerDocument | null> {
    const asked = path.replace(/\/$/, '');
    const { resource, servedAt } = this.resource;
    const places = new Set(['', readPath(resource), ...servedAt.map((path) => path.replace(/\/$/, ''))]);
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

  /**
   * For clients of 2025-03-26, which look for the authorization server at the resource: a copy of the first issuer's
   * metadata.
   */
  private async mirror(): Promise<IssuerDocument> {
    const [first] = this.resource.issuers;
    if (!first) throw new AuthenticationUnavailable('no issuer');
    const document = await first.documents.current();
    return Object.fromEntries(
      MIRRORED_MEMBERS.flatMap((name) => (name in document ? [[name, document[name]]] : [])),
    );
  }
}

/**
 * `WWW-Authenticate` for clients without a valid token (RFC 6750, RFC 9728): where the metadata is, and which scopes
 * to request.
 */
export class BearerChallenge {
  /**
   * @param metadataUrl of the protected resource's metadata
   * @param scopes that every caller needs
   */
  constructor(
    private readonly metadataUrl: string,
    private readonly scopes: readonly string[],
  ) {}

  /** For a request without a token. */
  unknown(): string {
    return this.challenge([], this.scopes);
  }

  invalid(): string {
    return this.challenge(['error="invalid_token"'], this.scopes);
  }

  /** @param scopes that the operation requires */
  insufficient(scopes: readonly string[]): string {
    return this.challenge(['error="insufficient_scope"'], scopes);
  }

  // Scopes and URL come from the configuration, whose validation excludes quotes.
  private challenge(error: readonly string[], scopes: readonly string[]): string {
    const scope = scopes.length > 0 ? [`scope="${scopes.join(' ')}"`] : [];
    return `Bearer ${[...error, ...scope, `resource_metadata="${this.metadataUrl}"`].join(', ')}`;
  }
}
