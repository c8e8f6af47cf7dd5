import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';

const SCOPES = 'invoices:read invoices:write';

const clientOf = (client_id: string, scope = SCOPES) => ({
  client_id,
  scope,
  client_secret: `${client_id}-in-development`,
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
});

/**
 * An authorization server for a start from a checkout, not for production: machines get tokens for their secrets. Of `acme-reader`
 * the organisation is `acme`, which the token says in its claim `org`.
 * @returns its address, which is the issuer of its tokens
 */
export async function startIdentityProvider(audience: string): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [
      clientOf('acme-reader', 'invoices:read'),
      clientOf('acme-clerk'),
      clientOf('globex-clerk'),
      clientOf('nobodys'),
    ],
    scopes: SCOPES.split(' '),
    extraTokenClaims: (_, token) => {
      const [org, role] = (token.clientId ?? '').split('-');
      return role === undefined ? {} : { org };
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => audience,
        getResourceServerInfo: (_, resource) => ({
          audience: resource,
          scope: SCOPES,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 300,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  });
  const answer = provider.callback();
  server.on('request', (request, response) => void answer(request, response));
  // It ends with the process that it was started for.
  server.unref();
  return issuer;
}
