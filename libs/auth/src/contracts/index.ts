import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CompactSign, type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';

export interface IssuerKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

export async function makeKey(alg = 'ES256', kid = 'first'): Promise<IssuerKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}

/** An authorization server over real HTTP, as far as a resource server uses one. */
export interface SmallIssuer {
  readonly issuer: string;
  readonly key: IssuerKey;
  /** The published keys; tests rotate them. */
  keys: JWK[];
  /** Merged over the published metadata. */
  metadata: Record<string, unknown>;
  /** Handlers by path that replace the default response. */
  readonly instead: Map<string, (request: IncomingMessage, response: ServerResponse) => void>;
  /** Requested paths, in order. */
  readonly asked: string[];
  token(claims?: Record<string, unknown>, options?: TokenOptions): Promise<string>;
  /** Signs any text in place of the claims. */
  signText(text: string): Promise<string>;
  close(): Promise<void>;
}

interface TokenOptions {
  readonly key?: Pick<IssuerKey, 'kid' | 'alg' | 'privateKey'>;
  /** Merged over the default header; undefined removes a member. */
  readonly header?: Record<string, unknown>;
}

export const AUDIENCE = 'https://parley.example.com/mcp';

export async function startIssuer(): Promise<SmallIssuer> {
  const key = await makeKey();
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    small.asked.push(path);
    const instead = small.instead.get(path);
    if (instead) return instead(request, response);
    const documents: Record<string, unknown> = {
      '/.well-known/oauth-authorization-server': {
        issuer,
        jwks_uri: `${issuer}/keys`,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        introspection_endpoint: `${issuer}/introspect`,
        ...small.metadata,
      },
      '/keys': { keys: small.keys },
    };
    const found = documents[path];
    response.writeHead(found ? 200 : 404, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(found ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const small: SmallIssuer = {
    issuer,
    key,
    keys: [key.jwk],
    metadata: {},
    instead: new Map(),
    asked: [],
    token: (claims = {}, { key: own = key, header = {} } = {}) => {
      const now = Math.floor(Date.now() / 1000);
      const payload = { iss: issuer, aud: AUDIENCE, sub: 'ada', iat: now, exp: now + 300, ...claims };
      const protectedHeader = { alg: own.alg, kid: own.kid, typ: 'at+jwt', ...header };
      return new SignJWT(payload as never)
        .setProtectedHeader(JSON.parse(JSON.stringify(protectedHeader)) as { alg: string })
        .sign(own.privateKey);
    },
    signText: (text) =>
      new CompactSign(Buffer.from(text))
        .setProtectedHeader({ alg: key.alg, kid: key.kid })
        .sign(key.privateKey),
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return small;
}

/** Closes connections without an answer, like a server that is down. */
export function outage(issuer: SmallIssuer): void {
  for (const path of ['/keys', '/.well-known/oauth-authorization-server', '/introspect'])
    issuer.instead.set(path, (_, response) => void response.destroy());
}
