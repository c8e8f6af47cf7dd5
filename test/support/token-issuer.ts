import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { endWithFile } from './started.js';

export interface TokenIssuer {
  readonly issuer: string;
  /** The headers of a caller with these claims. */
  signIn(claims: Readonly<Record<string, unknown>>, audience: string): Promise<Record<string, string>>;
  close(): Promise<void>;
}

/** Signs access tokens with any claims, and publishes its key. It ends with the file at the latest. */
export async function startTokenIssuer(): Promise<TokenIssuer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256', use: 'sig' };
  let issuer = '';
  const server: Server = createServer(({ url }, response) => {
    const metadata = { issuer, jwks_uri: `${issuer}/keys` };
    response.end(JSON.stringify(url === '/keys' ? { keys: [jwk] } : metadata));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()));
  endWithFile(close);
  return {
    issuer,
    close,
    signIn: async (claims, audience) => {
      const token = await new SignJWT({ ...claims })
        .setProtectedHeader({ alg: 'ES256', kid: 'one', typ: 'at+jwt' })
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime('1h')
        .sign(privateKey);
      return { Authorization: `Bearer ${token}` };
    },
  };
}
