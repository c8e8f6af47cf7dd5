import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { compileAgentDefinition, MASTER } from '#core';
import { AUDIENCE, makeKey, outage, type SmallIssuer, startIssuer } from '../contracts/index.js';
import { AuthenticationUnavailable, InvalidToken } from '../errors.js';
import { Grant } from './grants.js';
import { IssuerDocuments, KeyRing, wellKnownUrls } from './issuer-metadata.js';
import { isLoopbackUrl } from './issuer-request.js';
import { type OAuthIssuer, oauthRule } from './oauth-rule.js';
import { ALGORITHMS, TokenVerifier } from './token-verifier.js';

const grant = new Grant({
  definition: compileAgentDefinition('reader'),
  identity: MASTER,
  users: { findUser: () => Promise.resolve(null) },
});

let issuer: SmallIssuer;
beforeEach(async () => {
  issuer = await startIssuer();
});
afterEach(() => issuer.close());

const bearer = (token: string) => ({
  headers: { authorization: `Bearer ${token}` },
  remoteAddress: undefined,
});
const createRule = (options: Partial<OAuthIssuer> = {}) =>
  oauthRule(
    { issuer: issuer.issuer, audience: AUDIENCE, ...options },
    { grants: { required: [], base: grant, steps: [] } },
  );

/** A verifier whose clock a test moves. */
function createTimedKeys({ outage: seconds = 3600 } = {}) {
  const clock = { now: 0 };
  const jwksUri = () => Promise.resolve(`${issuer.issuer}/keys`);
  const keys = new KeyRing({ jwksUri, outage: seconds, cooldown: 30_000, now: () => clock.now });
  const verifier = new TokenVerifier({
    issuer: issuer.issuer,
    audiences: [AUDIENCE],
    algorithms: ALGORITHMS,
    clockSkew: 0,
    keys,
  });
  const fetches = () => issuer.asked.filter((path) => path === '/keys').length;
  return { clock, verifier, fetches };
}

describe('the keys of an issuer', () => {
  it('are found through what it says of itself, and fetched once for many calls', async () => {
    const rule = createRule();
    const token = await issuer.token();
    await Promise.all(Array.from({ length: 20 }, () => rule.recognise(bearer(token))));
    expect(issuer.asked).toEqual(['/.well-known/oauth-authorization-server', '/keys']);
  });

  it('are looked for once more when a token names one that is not known', async () => {
    const { clock, verifier, fetches } = createTimedKeys();
    await verifier.verify(await issuer.token());
    const next = await makeKey('ES256', 'second');
    issuer.keys = [next.jwk];
    clock.now += 30_001;
    expect(await verifier.verify(await issuer.token({}, { key: next }))).toMatchObject({ sub: 'ada' });
    expect(fetches()).toBe(2);
  });

  it('are not fetched for every key that somebody makes up', async () => {
    const { clock, verifier, fetches } = createTimedKeys();
    await verifier.verify(await issuer.token());
    clock.now += 30_001;
    for (let at = 0; at < 10; at++) {
      const token = await issuer.token({}, { header: { kid: `made up ${at}` } });
      await expect(verifier.verify(token)).rejects.toBeInstanceOf(InvalidToken);
    }
    expect(fetches()).toBe(2);
  });

  it.each([600_000, 3_000_000])(
    'that were taken back verify nothing at the first call after %i ms, a token known by heart included',
    async (pause) => {
      const { clock, verifier } = createTimedKeys();
      const token = await issuer.token();
      await verifier.verify(token);
      issuer.keys = [(await makeKey('ES256', 'second')).jwk];
      clock.now += pause;
      await expect(verifier.verify(token)).rejects.toBeInstanceOf(InvalidToken);
    },
  );

  it('in use are fetched ahead of time, so that nobody waits for them', async () => {
    const { clock, verifier, fetches } = createTimedKeys();
    const token = await issuer.token();
    await verifier.verify(token);
    clock.now += 400_000;
    await verifier.verify(token);
    await expect.poll(fetches).toBe(2);
    clock.now += 399_999;
    await verifier.verify(token);
    expect(fetches()).toBe(2);
  });

  it('keep nobody waiting for an issuer that has just been away', async () => {
    const { clock, verifier, fetches } = createTimedKeys();
    const token = await issuer.token({ exp: Math.floor(Date.now() / 1000) + 90_000 });
    await verifier.verify(token);
    issuer.instead.set('/keys', (_request, response) => void response.writeHead(503).end());
    clock.now += 600_000;
    await verifier.verify(token);
    expect(fetches()).toBe(2);
    // It does not answer at all any more.
    issuer.instead.set('/keys', () => undefined);
    clock.now += 30_000;
    expect(await verifier.verify(token)).toMatchObject({ sub: 'ada' });
    await expect.poll(fetches).toBe(3);
  });

  it('serve on in an outage, and not beyond its bound', async () => {
    const { clock, verifier } = createTimedKeys({ outage: 3600 });
    const token = await issuer.token({ exp: Math.floor(Date.now() / 1000) + 90_000 });
    await verifier.verify(token);
    outage(issuer);
    clock.now += 3_599_000;
    expect(await verifier.verify(token)).toMatchObject({ sub: 'ada' });
    clock.now += 2_000;
    await expect(verifier.verify(token)).rejects.toBeInstanceOf(AuthenticationUnavailable);
  });

  it('that were never had admit nobody, and are looked for again', async () => {
    outage(issuer);
    const { clock, verifier } = createTimedKeys();
    const token = await issuer.token();
    await expect(verifier.verify(token)).rejects.toBeInstanceOf(AuthenticationUnavailable);
    issuer.instead.clear();
    clock.now += 1_001;
    expect(await verifier.verify(token)).toMatchObject({ sub: 'ada' });
  });

  it.each<[string, (body: (text: string, status?: number, headers?: object) => void) => void]>([
    ['are too many bytes', (answer) => answer(`{"keys":[{"pad":"${'x'.repeat(300_000)}"}]}`)],
    ['are no JSON', (answer) => answer('<html>')],
    ['are none', (answer) => answer('{"keys":[]}')],
    ['are no list', (answer) => answer('{"keys":{"0":{}}}')],
    ['are more than a hundred', (answer) => answer(JSON.stringify({ keys: Array(101).fill({ kty: 'EC' }) }))],
    ['stand behind a redirect', (answer) => answer('', 302, { Location: `${issuer.issuer}/elsewhere` })],
    ['come with an error', (answer) => answer('{"keys":[]}', 500)],
  ])('are not had when they %s', async (_, say) => {
    issuer.instead.set('/keys', (_request, response) =>
      say((text, status = 200, headers = {}) => {
        response.writeHead(status, headers as Record<string, string>);
        response.end(text);
      }),
    );
    await expect(createRule().recognise(bearer(await issuer.token()))).rejects.toBeInstanceOf(
      AuthenticationUnavailable,
    );
    expect(issuer.asked).not.toContain('/elsewhere');
  });

  it('that are secret are nobody’s public key', async () => {
    issuer.keys = [{ kty: 'oct', k: 'c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0', kid: 'first', alg: 'HS256' }];
    await expect(createRule().recognise(bearer(await issuer.token()))).rejects.toBeInstanceOf(InvalidToken);
  });
});

describe('what an issuer says of itself', () => {
  it('is looked for where the standards put it, with a path and without', () => {
    expect(wellKnownUrls('https://id.example.com')).toEqual([
      'https://id.example.com/.well-known/oauth-authorization-server',
      'https://id.example.com/.well-known/openid-configuration',
    ]);
    expect(wellKnownUrls('https://id.example.com/realms/acme')).toEqual([
      'https://id.example.com/.well-known/oauth-authorization-server/realms/acme',
      'https://id.example.com/.well-known/openid-configuration/realms/acme',
      'https://id.example.com/realms/acme/.well-known/openid-configuration',
    ]);
  });

  it.each<[string, Record<string, unknown>]>([
    ['it names another issuer', { issuer: 'https://elsewhere.example.com' }],
    ['its keys are not over https', { jwks_uri: 'http://keys.example.com/jwks' }],
    ['its keys are a file', { jwks_uri: 'file:///etc/passwd' }],
    ['it names no keys', { jwks_uri: null }],
  ])('is not believed when %s', async (_, metadata) => {
    issuer.metadata = metadata;
    await expect(createRule().recognise(bearer(await issuer.token()))).rejects.toBeInstanceOf(
      AuthenticationUnavailable,
    );
  });

  it.each([
    'https://127.1/keys',
    'https://0.0.0.0/keys',
    'https://[::1]/keys',
    'https://[::]/keys',
    'https://[::ffff:127.0.0.1]/keys',
    'https://[::ffff:0.0.0.0]/keys',
    'https://localhost./keys',
    'https://inner.localhost/keys',
  ])('leads to this machine in no spelling unless it is here itself: %s', (url) => {
    expect(isLoopbackUrl(url)).toBe(true);
  });

  it('may lead to any other machine', () => {
    for (const host of ['id.example.com', '10.0.0.1', '[::ffff:10.0.0.1]', 'localhost.example.com'])
      expect(isLoopbackUrl(`https://${host}/keys`)).toBe(false);
  });

  it('is asked over https, or on this machine, and nowhere else', async () => {
    const documents = new IssuerDocuments('http://id.example.com');
    await expect(documents.current()).rejects.toThrow(/neither https nor loopback/);
  });
});
