// An issuer as the bench needs one: its keys over HTTP, and a token for the bench.
import http from 'node:http';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

export const AUDIENCE = 'https://parley.example.com/mcp';

/** @param alg what its tokens are signed with */
export async function startIssuer(alg) {
  const { privateKey, publicKey } = await generateKeyPair(alg);
  const jwk = { ...(await exportJWK(publicKey)), kid: 'bench', alg };
  const server = http.createServer((request, response) => {
    const document = request.url === '/keys' ? { keys: [jwk] } : { issuer, jwks_uri: `${issuer}/keys` };
    response.end(JSON.stringify(document));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const token = (subject) =>
    new SignJWT({})
      .setProtectedHeader({ alg, kid: 'bench', typ: 'at+jwt' })
      .setIssuer(issuer)
      .setAudience(AUDIENCE)
      .setSubject(subject)
      .setExpirationTime('1h')
      .sign(privateKey);
  return { issuer, token, close: () => server.close() };
}
