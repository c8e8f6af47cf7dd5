import { execFile } from 'node:child_process';
import { createServer, request as plainRequest, type RequestOptions } from 'node:http';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import Provider from 'oidc-provider';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { type Database, type Service, startDatabase, startService } from '../../support/service.js';
import { listenFor } from '../../support/started.js';

const COMMANDS = fileURLToPath(new URL('../../../dist/bundle/cli.js', import.meta.url));

/** Where browsers find the console; a balancer leads them to one of the replicas. */
const HOST = 'localhost:4999';
const CALLBACK = `http://${HOST}/console/session/oidc/callback`;

const PEOPLE: Readonly<Record<string, object>> = {
  ada: { groups: ['people', 'parley-admins'], name: 'Ada <b>L</b>', email: 'ada@example.com' },
  bob: { groups: ['people'], email: 'bob@example.com', email_verified: true },
  eve: { groups: [], email: 'bob@example.com', email_verified: false },
  zoe: { groups: ['parley-admins'] },
  mal: { groups: 'parley-admins-not', name: 'parley-admins' },
};

let person = 'ada';
let refuses = false;

/** A real issuer. Every visitor is `person`, and consents to everything unless `refuses`. */
async function startIssuer() {
  const server = createServer();
  const { origin: issuer, close } = await listenFor(server);
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'console',
        client_secret: 'secret-of-the-console',
        redirect_uris: [CALLBACK],
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'], groups: ['groups'] },
    scopes: ['openid'],
    subjectTypes: ['public', 'pairwise'],
    cookies: { keys: ['a key for the cookies of a test'] },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    features: { devInteractions: { enabled: false } },
    pkce: { required: () => true },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => Promise.resolve({ sub: id, ...PEOPLE[id] }),
    }),
  });
  const answer = provider.callback();
  server.on('request', (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return void answer(request, response);
    void (async () => {
      const { prompt, params, session } = await provider.interactionDetails(request, response);
      if (refuses)
        return provider.interactionFinished(request, response, {
          error: 'access_denied',
          error_description: '"><script>alert(1)</script>',
        });
      if (prompt.name === 'login')
        return provider.interactionFinished(request, response, { login: { accountId: person } });
      const clientId = params['client_id'] as string;
      const grant = new provider.Grant({ accountId: session?.accountId as string, clientId });
      grant.addOIDCScope(String(params['scope']));
      const consent = { grantId: await grant.save() };
      return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
    })();
  });
  return { issuer, close };
}

let issuer: Awaited<ReturnType<typeof startIssuer>>;
let redis: RedisServer;
let database: Database;
let one: Service;
let two: Service;
beforeAll(async () => {
  [issuer, redis, database] = await Promise.all([startIssuer(), startRedis(), startDatabase(POSTS_SEED)]);
  const start = () =>
    startService({
      config: {
        agents: { chief: { tenantId: 'acme' }, support: {}, reader: {} },
        auth: [
          { apiKey: 'key-of-chief-0000', agent: 'chief' },
          { agent: 'reader', oauth: { issuer: issuer.issuer, audience: 'http://127.0.0.1/mcp' } },
        ],
        policy: POSTS_POLICY,
        approvals: { approvers: ['chief'] },
        database: { uri: database.uri, name: 'parley' },
        redis: { url: redis.url },
        console: {
          operators: ['chief', 'support'],
          oidc: {
            clientId: 'console',
            clientSecret: 'secret-of-the-console',
            redirectUri: CALLBACK,
            scopes: ['profile', 'email', 'groups'],
            operators: [
              { claim: 'groups', equals: ['parley-admins'], agent: 'chief' },
              { claim: 'email', equals: 'bob@example.com', agent: 'support' },
            ],
          },
        },
      },
    });
  [one, two] = await Promise.all([start(), start()]);
}, 120_000);
afterAll(async () => {
  await Promise.all([one.stop(), two.stop()]);
  await Promise.all([issuer.close(), redis.stop(), database.stop()]);
});

interface Seen {
  readonly status: number;
  readonly location: string | undefined;
  readonly cookies: readonly string[];
  readonly text: string;
}

let browsers = 1;

/** A browser: cookies by host, `Host` of the console whichever replica answers. */
class Browser {
  readonly cookies = new Map<string, Map<string, string>>();
  /** Attempts are limited by address. */
  private readonly localAddress = `127.0.0.${(browsers += 1)}`;

  async get(
    service: Service,
    path: string,
    method = 'GET',
    headers: Record<string, string> = {},
  ): Promise<Seen> {
    const { port } = new URL(service.origin);
    return this.send(HOST, {
      hostname: '127.0.0.1',
      port,
      path,
      method,
      headers: { Host: HOST, ...headers },
    });
  }

  /** @returns the path at the console to which the issuer leads back */
  async atIssuer(start: string): Promise<string> {
    let url = new URL(start);
    for (let hops = 0; hops < 10; hops += 1) {
      if (url.host === HOST) return url.pathname + url.search;
      const { hostname, port, pathname, search } = url;
      const { location } = await this.send(url.host, { hostname, port, path: pathname + search });
      if (location === undefined) throw new Error(`stuck at ${url.href}`);
      url = new URL(location, url);
    }
    throw new Error('too many redirects');
  }

  private send(host: string, options: RequestOptions): Promise<Seen> {
    const jar = this.cookies.get(host) ?? new Map<string, string>();
    this.cookies.set(host, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...(cookie !== '' && { Cookie: cookie }), ...(options.headers as object) };
    return new Promise((resolve, reject) => {
      plainRequest({ ...options, headers, localAddress: this.localAddress }, (response) => {
        const cookies = response.headers['set-cookie'] ?? [];
        for (const set of cookies) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
          if (value === '') jar.delete(name);
          else jar.set(name, value);
        }
        let text = '';
        response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, location: response.headers.location, cookies, text }),
        );
      })
        .on('error', reject)
        .end();
    });
  }
}

const BEGIN = '/console/session/oidc';

/** Signs in: begins on one replica, ends on the other. */
async function signedIn(browser: Browser, as: string): Promise<Seen> {
  person = as;
  const begun = await browser.get(one, BEGIN);
  expect(begun.status).toBe(302);
  return browser.get(two, await browser.atIssuer(begun.location as string));
}

const sessionOf = async (browser: Browser) => {
  const { status, text } = await browser.get(one, '/console/session');
  return { status, body: JSON.parse(text) as Record<string, unknown> };
};

describe('the sign-in of operators with an issuer', () => {
  it('is announced to the page, without anything about operators', async () => {
    const { text } = await new Browser().get(one, '/console/session/methods');
    expect(JSON.parse(text)).toEqual({
      key: true,
      oidc: { issuer: issuer.issuer, name: new URL(issuer.issuer).host, begin: BEGIN },
    });
  });

  it('warns at the start where a person may have two subjects, and so approve a call of their own', async () => {
    const written = () => Object.values(one.output()).join('');
    await expect.poll(written).toMatch(/\[SECURITY\] operators who sign in with .* \(chief\).*pairwise/);
  });

  it('asks with PKCE, state and nonce, and keeps what it asked in a sealed cookie of its own path', async () => {
    const begun = await new Browser().get(one, BEGIN);
    const asked = Object.fromEntries(new URL(begun.location as string).searchParams);
    expect(asked).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      redirect_uri: CALLBACK,
      scope: 'openid profile email groups',
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    });
    const [cookie = ''] = begun.cookies;
    expect(cookie).toMatch(/Path=\/console\/session\/oidc; HttpOnly; SameSite=Lax; Max-Age=600/);
    expect(Buffer.from(cookie, 'base64url').toString('latin1')).not.toContain(asked['state']);
  });

  it('makes a session of the operator that a rule names, on any replica, until it is signed out', async () => {
    const browser = new Browser();
    const done = await signedIn(browser, 'ada');
    expect([done.status, done.location]).toEqual([303, '/console']);
    expect(done.cookies.find((cookie) => cookie.startsWith('parley-console='))).toMatch(
      /Path=\/console; HttpOnly; SameSite=Strict; Max-Age=1[78]\d\d/,
    );
    expect(await sessionOf(browser)).toMatchObject({
      status: 200,
      body: {
        agent: 'chief',
        tenant_id: 'acme',
        signed_in_by: 'oidc',
        name: 'Ada <b>L</b>',
        principal: `oauth:${issuer.issuer}|ada`,
      },
    });
    expect((await browser.get(two, '/console/api/status')).status).toBe(200);
    const kept = browser.cookies.get(HOST)?.get('parley-console') ?? '';
    const out = await browser.get(one, '/console/session', 'DELETE', { 'X-Parley-Console': '1' });
    expect(JSON.parse(out.text)).toMatchObject({
      signed_in: false,
      issuer_sign_out: expect.stringContaining(`${issuer.issuer}/session/end?client_id=console`),
    });
    browser.cookies.get(HOST)?.set('parley-console', kept);
    expect((await browser.get(two, '/console/api/status')).status).toBe(401);
  });

  it('ends when the person is revoked, on every replica', async () => {
    const browser = new Browser();
    await signedIn(browser, 'zoe');
    expect((await browser.get(two, '/console/api/status')).status).toBe(200);
    const revoke = [COMMANDS, 'revoke', '--issuer', issuer.issuer, '--subject', 'zoe', '--config', one.file];
    // The rule of these tokens has no revocation list: it says that sessions ended and tokens did not.
    await expect(promisify(execFile)(process.execPath, revoke)).rejects.toMatchObject({
      code: 1,
      stdout: expect.stringContaining('revoked: console sessions'),
      stderr: expect.stringContaining('tokens stay valid'),
    });
    for (const service of [one, two])
      expect((await browser.get(service, '/console/api/status')).status).toBe(401);
  });

  it('takes an address of mail only when the issuer has verified it', async () => {
    const bob = new Browser();
    expect((await signedIn(bob, 'bob')).location).toBe('/console');
    expect((await sessionOf(bob)).body).toMatchObject({ agent: 'support', name: null });
    const eve = new Browser();
    expect((await signedIn(eve, 'eve')).location).toBe('/console?sign_in=no_operator');
    expect((await sessionOf(eve)).status).toBe(401);
  });

  it('makes nobody an operator whom no rule names, and records the refusal', async () => {
    const browser = new Browser();
    const done = await signedIn(browser, 'mal');
    expect([done.status, done.location]).toEqual([303, '/console?sign_in=no_operator']);
    expect(done.cookies.some((cookie) => cookie.startsWith('parley-console='))).toBe(false);
    const audit = await fetch(`${two.origin}/console/api/audit?type=authentication`, {
      headers: { 'X-MCP-API-Key': 'key-of-chief-0000' },
    });
    expect(await audit.text()).toContain('no rule of console.oidc.operators');
  });

  it('never signs in with a state of another browser, a second time, or without one', async () => {
    person = 'ada';
    const [victim, attacker] = [new Browser(), new Browser()];
    const begun = await attacker.get(one, BEGIN);
    const callback = await attacker.atIssuer(begun.location as string);
    await victim.get(one, BEGIN);
    for (const path of [
      callback,
      callback.replace(/state=[^&]+/, 'state='),
      callback.replace(/state=[^&]+&?/, ''),
    ])
      expect((await victim.get(one, path)).location).toBe('/console?sign_in=mismatch');
    expect((await new Browser().get(one, callback)).location).toBe('/console?sign_in=mismatch');
    const cookie = attacker.cookies.get(HOST)?.get('parley-console-sign-in') ?? '';
    expect((await attacker.get(one, callback)).location).toBe('/console');
    const again = async (path: string) => {
      attacker.cookies.get(HOST)?.set('parley-console-sign-in', cookie);
      return (await attacker.get(two, path)).location;
    };
    expect(await again(callback)).toBe('/console?sign_in=invalid');
    const withNewCode = await attacker.atIssuer(begun.location as string);
    expect(withNewCode).not.toBe(callback);
    expect(await again(withNewCode)).toBe('/console?sign_in=expired');
  });

  it('refuses a wrong code, another issuer, and an issuer or a person who says no, in a few words', async () => {
    const attempt = async (change: (path: string) => string) => {
      const browser = new Browser();
      const begun = await browser.get(one, BEGIN);
      const path = await browser.atIssuer(begun.location as string);
      const done = await browser.get(one, change(path));
      expect((await sessionOf(browser)).status).toBe(401);
      return done.location;
    };
    person = 'ada';
    expect(await attempt((path) => path.replace(/code=[^&]+/, 'code=wrong'))).toBe(
      '/console?sign_in=invalid',
    );
    expect(await attempt((path) => path.replace(/iss=[^&]+/, 'iss=https%3A%2F%2Fevil.example'))).toBe(
      '/console?sign_in=mismatch',
    );
    expect(await attempt((path) => path.replace(/&iss=[^&]+/, ''))).toBe('/console?sign_in=mismatch');
    refuses = true;
    expect(await attempt((path) => path)).toBe('/console?sign_in=denied');
    refuses = false;
  });

  it('leads nowhere but to the issuer and the console, whatever it is sent', async () => {
    const browser = new Browser();
    for (const query of [
      '?redirect_uri=https://evil.example',
      '?next=//evil.example',
      '?state=https://evil.example',
    ]) {
      const begun = await browser.get(two, `${BEGIN}${query}`);
      expect(new URL(begun.location as string).origin).toBe(issuer.issuer);
      expect(begun.location).not.toContain('evil');
      const back = await browser.get(two, `${BEGIN}/callback${query}&error=//evil.example`);
      expect(back.location).toBe('/console?sign_in=mismatch');
    }
    const elsewhere = await browser.get(two, BEGIN, 'GET', { Host: new URL(two.origin).host });
    expect(elsewhere.location).toBe('/console?sign_in=wrong_host');
  });

  it('limits attempts, and lets no other site begin one or use them up', async () => {
    const browser = new Browser();
    const crossing = await browser.get(two, BEGIN, 'GET', { 'Sec-Fetch-Site': 'cross-site' });
    expect(crossing.status).toBe(403);
    for (let attempt = 0; attempt < 25; attempt += 1)
      expect((await browser.get(two, `${BEGIN}/callback`)).location).toBe('/console?sign_in=mismatch');
    expect((await signedIn(browser, 'ada')).location).toBe('/console');
    const places: (string | undefined)[] = [];
    for (let attempt = 0; attempt < 25; attempt += 1) places.push((await browser.get(two, BEGIN)).location);
    expect(places.map((place) => place === '/console?sign_in=too_many')).toEqual([
      ...Array<boolean>(18).fill(false),
      ...Array<boolean>(7).fill(true),
    ]);
  });
});
