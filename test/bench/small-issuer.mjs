// An issuer as the bench needs one: its keys over HTTP, and a token for the bench.
import http from 'node:http';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { listen } from '../../tools/free-port.mjs';

export const AUDIENCE = 'https://parley.example.com/mcp';

/** @param alg what its tokens are signed with */
export async function startIssuer(alg) {
  let current;
  let count = 0;
  let next;
  /** Shows a key that it will sign with, beside the one that it signs with now. */
  const announce = async () => {
    const { privateKey, publicKey } = await generateKeyPair(alg);
    const kid = `bench-${(count += 1)}`;
    next = { privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg } };
  };
  /** Signs with the announced key from now on; the one before is gone. */
  const rotate = () => {
    current = next;
    next = undefined;
  };
  await announce();
  rotate();
  const server = http.createServer((request, response) => {
    const keys = [current, next].flatMap((key) => (key ? [key.jwk] : []));
    const document = request.url === '/keys' ? { keys } : { issuer, jwks_uri: `${issuer}/keys` };
    response.end(JSON.stringify(document));
  });
  const issuer = `http://127.0.0.1:${await listen(server)}`;
  const token = (subject) =>
    new SignJWT({})
      .setProtectedHeader({ alg, kid: current.jwk.kid, typ: 'at+jwt' })
      .setIssuer(issuer)
      .setAudience(AUDIENCE)
      .setSubject(subject)
      .setExpirationTime('1h')
      .sign(current.privateKey);
  return { issuer, token, announce, rotate, close: () => server.close() };
}
