import { createServer } from 'node:http';
import Provider, { type Configuration } from 'oidc-provider';
import { listenFor } from './started.js';

export interface AuthorizationServerOptions {
  /** The protected resource that tokens are for. */
  readonly resource: string;
  readonly scopes: readonly string[];
  readonly redirectUri: string;
}

export interface AuthorizationServer {
  readonly issuer: string;
  close(): Promise<void>;
}

/** A person who signs in as `ada` and agrees to everything, without a page being shown. */
const SUBJECT = 'ada';

function configuration({ resource, scopes, redirectUri }: AuthorizationServerOptions): Configuration {
  return {
    clients: [
      {
        client_id: 'robot',
        client_secret: 'robot-secret',
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
      {
        client_id: 'host',
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: 'none',
        application_type: 'native',
      },
    ],
    scopes: ['openid', 'offline_access', ...scopes],
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    // Pages are hosts as well: the client is public and has no secret.
    clientBasedCORS: () => true,
    cookies: { keys: ['a key for the cookies of a test'] },
    findAccount: (_, id) => ({ accountId: id, claims: () => Promise.resolve({ sub: id }) }),
    extraTokenClaims: (_, { scope = '' }) => ({
      org_id: 'acme',
      // A user that there is, and one that there is not.
      parse_user: scope.includes('parley:write') ? 'ghost' : 'u1',
    }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, asked) => {
          if (asked !== resource) throw new Error('another resource');
          return {
            scope: scopes.join(' '),
            audience: resource,
            accessTokenFormat: 'jwt',
            accessTokenTTL: 300,
            jwt: { sign: { alg: 'RS256' } },
          };
        },
      },
    },
  };
}

/** An authorization server of its own kind: discovery, keys, authorization code with PKCE, client credentials. It ends with the file. */
export async function startAuthorizationServer(
  options: AuthorizationServerOptions,
): Promise<AuthorizationServer> {
  const server = createServer();
  const { origin: issuer, close } = await listenFor(server);
  const provider = new Provider(issuer, configuration(options));
  const answer = provider.callback();
  server.on('request', (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return void answer(request, response);
    void agree(provider, request, response);
  });
  return { issuer, close };
}

type Interaction = Parameters<Provider['interactionDetails']>;

async function agree(provider: Provider, ...[request, response]: Interaction): Promise<void> {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login')
    return provider.interactionFinished(request, response, { login: { accountId: SUBJECT } });
  const known = grantId === undefined ? undefined : await provider.Grant.find(grantId);
  const grant =
    known ??
    new provider.Grant({ accountId: session?.accountId as string, clientId: params['client_id'] as string });
  const { missingOIDCScope, missingResourceScopes } = prompt.details as {
    missingOIDCScope?: string[];
    missingResourceScopes?: Record<string, string[]>;
  };
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {}))
    grant.addResourceScope(resource, scopes.join(' '));
  const consent = { grantId: await grant.save() };
  await provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}
