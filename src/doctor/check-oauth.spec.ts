import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkOAuth, checkSignIn } from './check-oauth.js';

let server: Server;
let origin: string;
beforeAll(async () => {
  server = createServer(({ url }, response) => {
    const answers: Record<string, unknown> = {
      '/.well-known/openid-configuration/good': { issuer: `${origin}/good`, jwks_uri: `${origin}/keys` },
      '/keyless/.well-known/openid-configuration': {
        issuer: `${origin}/keyless`,
        jwks_uri: `${origin}/no-keys`,
      },
      '/.well-known/oauth-authorization-server/forged': {
        issuer: `${origin}/good`,
        jwks_uri: `${origin}/keys`,
      },
      '/.well-known/openid-configuration/people': {
        issuer: `${origin}/people`,
        authorization_endpoint: `${origin}/auth`,
        token_endpoint: `${origin}/token`,
        jwks_uri: `${origin}/keys`,
        subject_types_supported: ['public'],
      },
      '/.well-known/openid-configuration/pairs': {
        issuer: `${origin}/pairs`,
        authorization_endpoint: `${origin}/auth`,
        token_endpoint: `${origin}/token`,
        jwks_uri: `${origin}/keys`,
        subject_types_supported: ['public', 'pairwise'],
      },
      '/keys': { keys: [{ kty: 'OKP' }, { kty: 'RSA' }] },
      '/no-keys': { keys: [] },
    };
    const answer = answers[url ?? ''];
    if (url === '/endless') {
      return endless().pipe(response);
    }
    return response.writeHead(answer ? 200 : 404).end(JSON.stringify(answer ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** Ends only with the one that it is piped to. */
const endless = () =>
  Readable.from(
    (function* () {
      for (;;) yield 'x'.repeat(65_536);
    })(),
  );

const judged = async (oauth: object) =>
  (
    await checkOAuth([
      { apiKey: 'k', agent: 'a' },
      { oauth, agent: 'a' },
    ])
  ).map(({ check, level }) => `${level} ${check}`);

describe('the issuer of the console', () => {
  const configOf = (issuer: string | null, operators: readonly string[], approvers: readonly string[]) => ({
    console: {
      operators: ['chief', 'clerk'],
      oidc: issuer === null ? null : { issuer, operators: operators.map((agent) => ({ agent })) },
    },
    approvals: { approvers },
    auth: [{ apiKey: 'k', agent: 'a' }],
  });
  const found = async (
    issuer: string | null,
    operators: readonly string[] = ['chief'],
    { approvers = [], tokensOf = [] }: { approvers?: readonly string[]; tokensOf?: readonly string[] } = {},
  ) => {
    const config = configOf(issuer, operators, approvers);
    const rules = tokensOf.map((one) => ({ agent: 'a', oauth: { issuer: one, audience: 'x' } }));
    const findings = await checkSignIn({ ...config, auth: [...config.auth, ...rules] } as never);
    return findings.map(({ check, level }) => `${level} ${check}`);
  };
  const [GOOD, DOUBT] = [['ok console.oidc'], ['warn console.oidc', 'ok console.oidc']];

  it('is good when it names what a sign-in needs, and somebody can be an operator', async () => {
    expect(await found(null)).toEqual([]);
    expect(await found(`${origin}/people`)).toEqual(GOOD);
    expect(await found(`${origin}/people`, [])).toEqual(['warn console.oidc']);
    for (const issuer of [`${origin}/good`, `${origin}/nowhere`])
      expect(await found(issuer)).toEqual(['fail console.oidc']);
  });

  it('is doubted where an approver may have another subject in access tokens', async () => {
    const [people, pairs] = [`${origin}/people`, `${origin}/pairs`];
    const asked = (issuer: string, tokensOf: readonly string[], approvers = ['chief']) =>
      found(issuer, ['clerk', 'chief'], { approvers, tokensOf });
    expect(await asked(people, [people])).toEqual(GOOD);
    expect(await asked(pairs, [pairs])).toEqual(DOUBT);
    expect(await asked(people, [people, 'https://other.example'])).toEqual(DOUBT);
    expect(await asked(people, ['https://other.example'])).toEqual(DOUBT);
    // Without access tokens of an issuer nobody has two subjects.
    expect(await asked(pairs, [])).toEqual(GOOD);
    // Nobody who signs in with it decides.
    expect(await asked(pairs, [pairs], ['other'])).toEqual(GOOD);
  });
});

describe('an issuer of access tokens', () => {
  it('is good when it describes itself and has keys', async () => {
    expect(await judged({ issuer: `${origin}/good` })).toEqual(['ok oauth.issuer', 'ok oauth.keys']);
    expect(await judged({ issuer: 'https://elsewhere', jwksUri: `${origin}/keys` })).toEqual([
      'ok oauth.issuer',
      'ok oauth.keys',
    ]);
  });

  it('fails without keys, and with an answer that does not end', async () => {
    expect(await judged({ issuer: `${origin}/keyless` })).toEqual(['ok oauth.issuer', 'fail oauth.keys']);
    expect(await judged({ issuer: 'x', jwksUri: `${origin}/endless` })).toEqual([
      'ok oauth.issuer',
      'fail oauth.keys',
    ]);
  });

  it('fails when nobody, or only somebody else, answers for it', async () => {
    for (const issuer of [`${origin}/forged`, `${origin}/nowhere`, 'http://127.0.0.1:1', 'no address'])
      expect(await judged({ issuer })).toEqual(['fail oauth.issuer']);
  });

  it('is not asked on this machine, or its link, under a name that leads there', async () => {
    const { port } = new URL(origin);
    let reached = 0;
    const requested = new Set<string>();
    server.on('connection', () => (reached += 1));
    for (const address of ['127.0.0.1', '169.254.169.254']) {
      const resolve = (name: string) => {
        requested.add(name);
        return Promise.resolve([address]);
      };
      const levelsOf = async (oauth: object) =>
        (await checkOAuth([{ oauth, agent: 'a' }], resolve)).map(({ check, level }) => `${level} ${check}`);
      expect(await levelsOf({ issuer: `https://issuer.example:${port}` })).toEqual(['fail oauth.issuer']);
      expect(
        await levelsOf({ issuer: 'https://issuer.example', jwksUri: `https://keys.example:${port}/keys` }),
      ).toEqual(['ok oauth.issuer', 'fail oauth.keys']);
    }
    expect([...requested]).toEqual(['issuer.example', 'keys.example']);
    expect(reached).toBe(0);
    expect(await judged({ issuer: 'x', jwksUri: `http://localhost:${port}/keys` })).toContain(
      'ok oauth.keys',
    );
  });
});
