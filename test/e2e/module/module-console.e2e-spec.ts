import 'reflect-metadata';
import {
  type CanActivate,
  Controller,
  Get,
  type INestApplication,
  Injectable,
  type LoggerService,
  VersioningType,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type Server,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type SmallIssuer, startIssuer } from '#auth/contracts';
import { type RedisServer, startRedis } from '#state/contracts';
import {
  AGENT_FACTORY,
  type AgentChooser,
  ParleyModule,
  type ParleyModuleExtras,
  type ParleyModuleOptions,
  Tool,
} from '@parley/server';
import { POSTS_POLICY, POSTS_SEED, SECRET } from '../../fixtures/posts.fixture.js';
import { decideApproval } from '../../support/decide-approval.js';
import { openBrowser } from '../../support/browser.js';
import { callTool, startDatabase } from '../../support/service.js';

const posts = await startDatabase(POSTS_SEED);

const KEYS = { chief: 'key-of-chief-0000', writer: 'key-of-writer-0000', biller: 'key-of-biller-0000' };
type Caller = keyof typeof KEYS;
const as = (caller: Caller) => ({ 'X-MCP-API-Key': KEYS[caller] });
const CHANGING = { 'X-Parley-Console': '1', 'Content-Type': 'application/json' };
/** The key of both instances: what keeps their sessions apart is not that they cannot open them. */
const STATE_KEY = 'a'.repeat(64);

type Instance = ParleyModuleOptions & Pick<ParleyModuleExtras, 'name' | 'providers'>;

const NEWS: Instance = {
  database: { uri: posts.uri, name: 'parley' },
  policy: { ...POSTS_POLICY, requireApprovalFor: ['write', 'admin'] },
  server: { drainTimeout: 1, stateKey: STATE_KEY },
  environment: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  agents: {
    chief: { permissions: 'admin', tenantId: 'acme' },
    writer: { permissions: 'write', tenantId: 'acme' },
  },
  approvals: { mode: 'desk', approvers: ['chief'] },
  auth: [
    { apiKey: KEYS.chief, agent: 'chief' },
    { apiKey: KEYS.writer, agent: 'writer' },
  ],
  console: { operators: ['chief'] },
};
const BILLING: Instance = {
  ...NEWS,
  name: 'billing',
  server: { path: '/billing', drainTimeout: 1, stateKey: STATE_KEY },
  agents: { biller: { permissions: 'readonly', tenantId: 'globex' } },
  approvals: {},
  auth: [{ apiKey: KEYS.biller, agent: 'biller' }],
  console: { operators: ['biller'] },
  policy: { unlistedClasses: 'allow' },
};
/** No operators are named. */
const PLAIN: Instance = { ...NEWS, name: 'plain', server: { path: '/plain', drainTimeout: 1 }, console: {} };

@Injectable()
class Rates {
  @Tool({ name: 'read_rates', description: 'The rates of today.' })
  read() {
    return { usd: 1 };
  }
}

let guarded = 0;
/** Refuses every route of the application, and would refuse the console. */
@Injectable()
class ClosedGuard implements CanActivate {
  canActivate(): boolean {
    guarded += 1;
    return false;
  }
}

@Controller('console')
class OwnConsoleController {
  @Get()
  own() {
    return 'of the application';
  }
}

class Lines implements LoggerService {
  readonly lines: string[] = [];
  log = (...given: unknown[]) => void this.lines.push(given.map(String).join(' '));
  warn = this.log;
  error = this.log;
}

const open: INestApplication[] = [];

async function applicationOf(
  instances: readonly Instance[],
  {
    adapter = () => new ExpressAdapter() as unknown,
    prefix = '',
    closed = false,
    logger = false as false | Lines,
  } = {},
): Promise<string> {
  const compiled = await Test.createTestingModule({
    imports: [...instances.map((one) => ParleyModule.forRoot(one)), ParleyModule.forFeature([Rates])],
    controllers: [OwnConsoleController],
    providers: [Rates, ...(closed ? [{ provide: APP_GUARD, useClass: ClosedGuard }] : [])],
  }).compile();
  const app = compiled.createNestApplication(adapter() as never, { logger });
  if (logger) app.useLogger(logger);
  open.push(app);
  if (prefix !== '') {
    app.setGlobalPrefix(prefix);
    app.enableVersioning({ type: VersioningType.URI, defaultVersion: ['1', '2'] });
  }
  await app.listen(0, '127.0.0.1');
  return (await app.getUrl()).replace('[::1]', '127.0.0.1');
}
const closeAll = () => Promise.all(open.splice(0).map((app) => app.close()));

const cookieOf = (response: Response) => (response.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
const signIn = (at: string, key: string) =>
  fetch(`${at}/session`, { method: 'POST', headers: CHANGING, body: JSON.stringify({ key }) });

/** As `fetch`, which sends no other `Host` and follows redirects. */
function get(url: string, headers: Record<string, string>, { method = 'GET', body = '' } = {}) {
  return new Promise<{ status: number; location: string; cookies: string[] }>((resolve, reject) => {
    request(url, { method, headers }, (answer) => {
      answer.resume();
      resolve({
        status: answer.statusCode ?? 0,
        location: answer.headers.location ?? '',
        cookies: answer.headers['set-cookie'] ?? [],
      });
    })
      .on('error', reject)
      .end(body);
  });
}

/** A request as it is written: `fetch` resolves dots and refuses some headers. */
function send(
  origin: string,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
  body?: object,
): Promise<{ status: number; text: string; headers: IncomingHttpHeaders }> {
  const { hostname, port } = new URL(origin);
  const sent = body === undefined ? '' : JSON.stringify(body);
  const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(sent)) };
  return new Promise((resolve, reject) => {
    request({ hostname, port, path, method, headers: { ...headers, ...length } }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          text: Buffer.concat(chunks).toString(),
          headers: answer.headers,
        }),
      );
    })
      .on('error', reject)
      .end(sent);
  });
}

const adapters = [
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
] as const;

describe.each(adapters)('the console of an instance in an application on %s', (_, adapter) => {
  let origin: string;
  let logger: Lines;
  const news = (version = 1) => `${origin}/api/v${version}/mcp/console`;
  const billing = () => `${origin}/api/v1/billing/console`;

  beforeAll(async () => {
    logger = new Lines();
    guarded = 0;
    origin = await applicationOf([NEWS, BILLING, PLAIN], { adapter, prefix: 'api', closed: true, logger });
  });
  afterAll(closeAll);

  it('is below the path of MCP, where operators are named, and nowhere else', async () => {
    const page = await fetch(news());
    expect(page.status).toBe(200);
    const html = await page.text();
    const [script = ''] = /\/api\/v1\/mcp\/console\/assets\/[\w-]+\/main\.js/.exec(html) ?? [];
    expect((await fetch(`${origin}${script}`)).status).toBe(200);
    expect(await (await fetch(news(2))).text()).toContain('"/api/v2/mcp/console/assets/');
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    for (const absent of ['/api/v1/plain/console', '/console', '/mcp/console', '/api/v1/mcp/consoles'])
      expect([absent, (await fetch(`${origin}${absent}`)).status]).not.toEqual([absent, 200]);
    expect(logger.lines.join('\n')).toMatch(
      /Parley \(default\) at \/api\/v1\/mcp, \/api\/v2\/mcp, console at \/api\/v1\/mcp\/console, \/api\/v2\/mcp\/console: /,
    );
    expect(logger.lines.join('\n')).toMatch(/Parley \(plain\) at \/api\/v1\/plain, \/api\/v2\/plain: /);
  });

  it('runs no guard of the application, which its own routes have', async () => {
    const before = guarded;
    expect((await fetch(`${news()}/api/status`, { headers: as('chief') })).status).toBe(200);
    expect(guarded).toBe(before);
    expect((await fetch(`${origin}/api/v1/console`)).status).toBe(403);
    expect(guarded).toBe(before + 1);
  });

  it('is opened by its own operators alone', async () => {
    const status = async (at: string, headers: Record<string, string>) =>
      (await fetch(`${at}/api/status`, { headers })).status;
    expect(await status(news(), {})).toBe(401);
    expect(await status(news(), as('writer'))).toBe(403);
    expect(await status(news(), as('biller'))).toBe(401);
    expect(await status(billing(), as('chief'))).toBe(401);
    expect(await status(billing(), as('biller'))).toBe(200);
    expect((await get(`${news()}/api/status`, { ...as('chief'), Host: 'rebound.example' })).status).toBe(403);
    const foreign = { ...as('chief'), Origin: 'https://other.example' };
    expect(await status(news(), foreign)).toBe(403);
  });

  it('keeps its sessions to its path and to itself', async () => {
    const response = await signIn(news(), KEYS.chief);
    expect(response.status).toBe(200);
    expect(response.headers.get('set-cookie')).toMatch(
      /^parley-console-[0-9a-f]{8}=[^;]+; Path=\/api\/v1\/mcp\/console; HttpOnly; SameSite=Strict; Max-Age=\d+$/,
    );
    const cookie = cookieOf(response);
    const at = async (console: string, sent: string) =>
      (await fetch(`${console}/session`, { headers: { Cookie: sent } })).status;
    expect(await at(news(), cookie)).toBe(200);
    // Another console, and the same under another version, know neither its name nor what it seals.
    for (const other of [billing(), news(2)]) {
      expect(await at(other, cookie)).toBe(401);
      const own = cookieOf(await signIn(other, other === billing() ? KEYS.biller : KEYS.chief));
      const renamed = `${own.split('=')[0]}=${cookie.slice(cookie.indexOf('=') + 1)}`;
      expect(await at(other, own)).toBe(200);
      expect(await at(other, renamed)).toBe(401);
    }
    const out = await fetch(`${news()}/session`, {
      method: 'DELETE',
      headers: { ...CHANGING, Cookie: cookie },
    });
    expect(out.headers.get('set-cookie')).toMatch(/; Path=\/api\/v1\/mcp\/console; .*Max-Age=0/);
    expect(await at(news(), cookie)).toBe(401);
  });

  it('explains calls of the instance, of tools of the application too, and starts nothing that is logged', async () => {
    const before = logger.lines.length;
    const explain = async (tool: string, args: object) =>
      (await (
        await fetch(`${news()}/api/explain`, {
          method: 'POST',
          headers: { ...as('chief'), ...CHANGING },
          body: JSON.stringify({ agent: 'writer', tool, args }),
        })
      ).json()) as { allowed: boolean; refusal?: { gate: string }; commands: unknown[] };
    expect(await explain('query_class', { class_name: 'Post' })).toMatchObject({ allowed: true });
    expect(await explain('query_class', { class_name: 'Contract' })).toMatchObject({
      allowed: false,
      refusal: { gate: 'class' },
    });
    expect(await explain('read_rates', {})).toMatchObject({ allowed: true });
    const classes = await fetch(`${news()}/api/agents/writer/classes`, { headers: as('chief') });
    expect(
      ((await classes.json()) as { classes: { name: string }[] }).classes.map(({ name }) => name),
    ).toContain('Post');
    expect(logger.lines.slice(before)).toEqual([]);
  });

  it('shows the calls of its instance, and none of another', async () => {
    await callTool({ url: `${origin}/api/v1/mcp` }, 'count_objects', { class_name: 'Post' }, as('writer'));
    await callTool(
      { url: `${origin}/api/v1/billing` },
      'count_objects',
      { class_name: 'Author' },
      as('biller'),
    );
    const read = async (at: string, path: string, caller: Caller) =>
      (await fetch(`${at}/api/${path}`, { headers: as(caller) })).text();
    const ownAudit = await read(news(), 'audit', 'chief');
    expect(ownAudit).toContain('"class_name":"Post"');
    expect(ownAudit).not.toContain('biller');
    const otherAudit = await read(billing(), 'audit', 'biller');
    expect(otherAudit).toContain('"class_name":"Author"');
    expect(otherAudit).not.toContain('writer');
    const overview = JSON.parse(await read(news(), 'overview', 'chief')) as { agents: { name: string }[] };
    expect(overview.agents.map(({ name }) => name)).toEqual(['writer']);
    expect(`${ownAudit}${otherAudit}`).not.toContain(SECRET);
  });
});

describe.each(adapters)(
  'a request with a hostile address or header, in an application on %s',
  (_, adapter) => {
    let origin: string;
    const at = '/api/v1/mcp/console';
    beforeAll(async () => {
      origin = await applicationOf([NEWS, BILLING], { adapter, prefix: 'api' });
    });
    afterAll(closeAll);

    it.each([
      '//api/v1/mcp/console/api/status',
      '/api/v1/mcp//console/api/status',
      '/api/v1/mcp/%63onsole/api/status',
      '/api/v1/mcp%2fconsole/api/status',
      '/api/v1/mcp/console%2fapi%2fstatus',
      '/api/v1/mcp/CONSOLE/api/status',
      '/api/v1/mcp/console;x/api/status',
      `http://other.example${at}/api/status`,
      `${at}//api/status`,
      `${at}/./api/status`,
      `${at}/x/../api/status`,
      `${at}/..;/console/api/status`,
      `${at}/%2e%2e/console/api/status`,
      `${at}/API/status`,
      `${at}/api/status/`,
      `${at}/api/status;x`,
      `${at}/assets/%2e%2e/%2e%2e/package.json`,
      `${at}/assets/x/..%2f..%2fpackage.json`,
    ])('finds no other way to a route: %s', async (path) => {
      expect((await send(origin, path, as('chief'))).status).toBe(404);
      expect([401, 404]).toContain((await send(origin, path)).status);
    });

    it('has the path and the host of a console from nothing but its own address', async () => {
      const claims = {
        Forwarded: 'host=other.example;proto=https',
        'X-Forwarded-Host': 'other.example',
        'X-Forwarded-Prefix': '/other',
        'X-Forwarded-Proto': 'https',
        'X-Original-URL': '/api/v1/billing/console',
        'X-Rewrite-URL': '/api/v1/billing/console',
      };
      const page = await send(origin, at, claims);
      expect(page.text).toContain(`"${at}/assets/`);
      expect(page.text).not.toContain('other');
      const signedIn = await send(origin, `${at}/session`, { ...CHANGING, ...claims }, 'POST', {
        key: KEYS.chief,
      });
      expect(signedIn.headers['set-cookie']?.[0]).toMatch(
        /^parley-console-[0-9a-f]{8}=[^;]+; Path=\/api\/v1\/mcp\/console; HttpOnly; SameSite=Strict; Max-Age=\d+$/,
      );
      for (const Host of ['other.example', 'localhost.', '127.1'])
        expect([Host, (await send(origin, at, { Host })).status]).toEqual([Host, 403]);
      for (const Host of ['localhost/x', 'x@localhost', 'localhost, other.example', 'localhost:99999'])
        expect([Host, (await send(origin, at, { Host })).status]).toEqual([Host, 400]);
    });

    it('changes nothing for another site, and every answer keeps a browser to the console', async () => {
      const cookie = cookieOf(await signIn(`${origin}${at}`, KEYS.chief));
      const paths = [
        '',
        '/session',
        '/session/oidc',
        '/session/oidc/callback',
        '/api/explain',
        '/api/approvals/x',
      ];
      const site = { Cookie: cookie, Origin: 'https://other.example', 'Sec-Fetch-Site': 'cross-site' };
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])
        for (const path of [...paths, '/assets/x/main.js', '/nothing']) {
          const body = method === 'GET' || method === 'HEAD' ? undefined : {};
          const { status, headers } = await send(
            origin,
            `${at}${path}`,
            { ...CHANGING, ...site },
            method,
            body,
          );
          const isPage = path === '' && body === undefined;
          const isAbsent = body === undefined && /callback|assets/.test(path);
          expect([method, path, status]).toEqual([method, path, isPage ? 200 : isAbsent ? 404 : 403]);
          expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
          expect(headers).toMatchObject({
            'x-frame-options': 'DENY',
            'x-content-type-options': 'nosniff',
            'referrer-policy': 'no-referrer',
            'cross-origin-opener-policy': 'same-origin',
            'cross-origin-resource-policy': 'same-origin',
            'cache-control': 'no-store',
          });
          for (const absent of ['set-cookie', 'access-control-allow-origin', 'location'])
            expect(headers[absent]).toBeUndefined();
        }
      expect((await send(origin, `${at}/api/status`, { Cookie: cookie })).status).toBe(200);
    });

    it('is nobody with two cookies of one name, a changed one, or one under another host', async () => {
      const cookie = cookieOf(await signIn(`${origin}${at}`, KEYS.chief));
      const [name = '', value = ''] = cookie.split('=');
      const status = async (Cookie: string, headers = {}) =>
        (await send(origin, `${at}/api/status`, { Cookie, ...headers })).status;
      expect(await status(`x=1;${cookie}`)).toBe(200);
      for (const wrong of [
        `${cookie}; ${name}=x`,
        `${name}=x; ${cookie}`,
        `${cookie}; ${cookie}`,
        `${name} =${value}`,
        `${name}="${value}"`,
        `${name}=${value}A`,
        `${name.toUpperCase()}=${value}`,
      ])
        expect(await status(wrong)).toBe(401);
      expect(await status(cookie, { Host: 'localhost' })).toBe(401);
      // A session that somebody else planted is not the one of a sign-in.
      const again = cookieOf(
        await fetch(`${origin}${at}/session`, {
          method: 'POST',
          headers: { ...CHANGING, Cookie: cookie },
          body: JSON.stringify({ key: KEYS.chief }),
        }),
      );
      await send(origin, `${at}/session`, { ...CHANGING, Cookie: cookie }, 'DELETE');
      expect([await status(cookie), await status(again)]).toEqual([401, 200]);
    });
  },
);

describe('the place of a console', () => {
  afterEach(closeAll);

  it('is a path of its host also where MCP is the root', async () => {
    const logger = new Lines();
    const origin = await applicationOf([{ ...NEWS, server: { ...NEWS.server, path: '/' } }], { logger });
    const page = await send(origin, '/console');
    expect(page.status).toBe(200);
    expect(page.text).toContain('"/console/assets/');
    expect(cookieOf(await signIn(`${origin}/console`, KEYS.chief))).toMatch(/^parley-console=/);
    expect(logger.lines.join('\n')).toContain('Parley (default) at /, console at /console: ');
  });

  it('never begins with what a browser takes for a host', async () => {
    for (const path of ['//other', '/mcp//x'])
      await expect(applicationOf([{ ...NEWS, server: { ...NEWS.server, path } }])).rejects.toThrow(
        'must not contain //',
      );
  });

  it('shows nothing that another instance keeps in the same collection of records', async () => {
    const audit = (collection: string) => ({ sinks: [{ kind: 'mongodb' as const, collection }] });
    const both = [NEWS, BILLING].map((one) => ({ ...one, audit: audit('records') }));
    await expect(applicationOf(both)).rejects.toThrow(
      'both default and billing keep in one place (audit.sinks: parley_audit.records)',
    );
    const origin = await applicationOf([
      { ...NEWS, audit: audit('records') },
      { ...BILLING, audit: audit('billing') },
    ]);
    await callTool({ url: `${origin}/mcp` }, 'count_objects', { class_name: 'Post' }, as('writer'));
    const audited = async (path: string, caller: Caller) =>
      (await send(origin, `${path}/console/api/audit?tool=count_objects`, as(caller))).text;
    await expect.poll(() => audited('/mcp', 'chief')).toContain('"class_name":"Post"');
    expect(JSON.parse(await audited('/billing', 'biller'))).toMatchObject({ entries: [] });
  });
});

describe('who is an operator of an application', () => {
  afterEach(closeAll);

  it('may be said by its AGENT_FACTORY, and is nobody whom it does not name', async () => {
    const choose: AgentChooser = ({ headers }) =>
      headers['x-ticket'] === 'of-the-chief'
        ? { agent: 'chief', principal: 'chief@example.com' }
        : headers['x-ticket'] === undefined
          ? null
          : { agent: 'writer', principal: 'somebody@example.com' };
    const { auth: _auth, ...withoutRules } = NEWS;
    const origin = await applicationOf([
      { ...withoutRules, providers: [{ provide: AGENT_FACTORY, useValue: choose }] },
    ]);
    const status = async (headers: Record<string, string>) =>
      (await fetch(`${origin}/mcp/console/api/status`, { headers })).status;
    expect(await status({ 'X-Ticket': 'of-the-chief' })).toBe(200);
    expect(await status({ 'X-Ticket': 'of-a-writer' })).toBe(403);
    expect(await status({})).toBe(401);
  });

  it('never opens a console that names no operators, whatever the rest of its options', async () => {
    const origin = await applicationOf([{ ...NEWS, console: { operators: null } }]);
    for (const path of ['', '/', '/session', '/api/status', '/assets/x/main.js'])
      expect((await fetch(`${origin}/mcp/console${path}`, { headers: as('chief') })).status).toBe(404);
    expect(await (await fetch(`${origin}/console`)).text()).toBe('of the application');
  });
});

describe('the sign-in with an issuer at the console of an instance', () => {
  let issuer: SmallIssuer;
  beforeAll(async () => {
    issuer = await startIssuer();
  });
  afterAll(() => issuer.close());
  afterEach(closeAll);

  const withIssuer = (redirectUri: string): Instance => ({
    ...NEWS,
    console: {
      operators: ['chief'],
      oidc: {
        issuer: issuer.issuer,
        clientId: 'console',
        redirectUri,
        operators: [{ claim: 'groups', equals: 'operators', agent: 'chief' }],
      },
    },
  });

  it('returns to it, with a session of its own path', async () => {
    // The port is known only afterwards: a name of this machine stands for the address.
    const host = 'parley.example';
    const origin = await applicationOf([
      {
        ...withIssuer(`https://${host}/mcp/console/session/oidc/callback`),
        server: { host: '0.0.0.0', allowedHosts: [host], stateKey: STATE_KEY },
      },
    ]);
    const at = (path: string, cookie = '') =>
      get(`${origin}${path}`, { Host: host, ...(cookie !== '' && { Cookie: cookie }) });
    const begun = await at('/mcp/console/session/oidc');
    expect(begun.status).toBe(302);
    const asked = new URL(begun.location).searchParams;
    expect(asked.get('redirect_uri')).toBe(`https://${host}/mcp/console/session/oidc/callback`);
    expect(begun.cookies[0]).toMatch(
      /^__Host-parley-console-sign-in-[0-9a-f]{8}=[^;]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600; Secure$/,
    );
    issuer.instead.set('/token', (_request, response) => {
      void issuer
        .token(
          { aud: 'console', nonce: asked.get('nonce'), sub: 'ada', groups: ['operators'] },
          { header: { typ: 'JWT' } },
        )
        .then((id_token) => {
          response.writeHead(200, { 'Content-Type': 'application/json' });
          response.end(JSON.stringify({ id_token }));
        });
    });
    const pending = begun.cookies[0]?.split(';')[0] ?? '';
    const done = await at(`/mcp/console/session/oidc/callback?code=c&state=${asked.get('state')}`, pending);
    expect([done.status, done.location]).toEqual([303, '/mcp/console']);
    const [cleared, session = ''] = done.cookies;
    expect(cleared).toMatch(/^__Host-parley-console-sign-in-[0-9a-f]{8}=;.*Max-Age=0/);
    expect(session).toMatch(
      /^__Secure-parley-console-[0-9a-f]{8}=[^;]+; Path=\/mcp\/console; HttpOnly; SameSite=Strict; .*; Secure$/,
    );
    expect((await at('/mcp/console/api/status', session.split(';')[0])).status).toBe(200);
    const failed = await at('/mcp/console/session/oidc/callback?code=c&state=guessed', pending);
    expect(failed.location).toBe('/mcp/console?sign_in=mismatch');
  });

  it('is warned of where the issuer would lead elsewhere', async () => {
    const logger = new Lines();
    await applicationOf([withIssuer('https://parley.example/elsewhere/mcp/console/session/oidc/callback')], {
      logger,
    });
    expect(logger.lines.join('\n')).toContain(
      'the console is served at /mcp/console (console.oidc.redirectUri)',
    );
    await expect(
      applicationOf([withIssuer('https://parley.example/console/session/oidc/callback')]),
    ).rejects.toThrow('must end with the path /mcp/console/session/oidc/callback');
  });
});

describe('two replicas of an application', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => {
    await closeAll();
    await redis.stop();
  });

  it('open the sessions of each other, end them together and sum their calls', async () => {
    const replica = { ...NEWS, redis: { url: redis.url } };
    const [one, two] = (await Promise.all([applicationOf([replica]), applicationOf([replica])])) as [
      string,
      string,
    ];
    // Sessions are of one host name, which a load balancer has for all replicas.
    const Host = 'localhost';
    const signedIn = await get(
      `${one}/mcp/console/session`,
      { ...CHANGING, Host },
      { method: 'POST', body: JSON.stringify({ key: KEYS.chief }) },
    );
    const session = { Host, Cookie: signedIn.cookies[0]?.split(';')[0] ?? '' };
    expect((await get(`${two}/mcp/console/api/status`, session)).status).toBe(200);
    await callTool({ url: `${one}/mcp` }, 'count_objects', { class_name: 'Post' }, as('writer'));
    await callTool({ url: `${two}/mcp` }, 'count_objects', { class_name: 'Post' }, as('writer'));
    const overview = async () =>
      (await (await fetch(`${two}/mcp/console/api/overview`, { headers: as('chief') })).json()) as {
        totals: { calls: number };
        scope: string;
      };
    await expect.poll(async () => (await overview()).totals.calls, { timeout: 20_000 }).toBe(2);
    expect(await overview()).toMatchObject({ scope: 'replicas', degraded: false });
    const state = await (await fetch(`${two}/mcp/console/api/state`, { headers: as('chief') })).json();
    expect(state).toMatchObject({ scope: 'replicas', replicas: [{}, {}] });
    const updating = callTool(
      { url: `${one}/mcp` },
      'update_object',
      { class_name: 'Post', object_id: 'p05', fields: { title: 'Decided elsewhere' } },
      as('writer'),
    );
    const cases = async () =>
      (
        (await (await fetch(`${two}/mcp/console/api/approvals`, { headers: as('chief') })).json()) as {
          approvals: { id: string }[];
        }
      ).approvals;
    await expect.poll(async () => (await cases()).length, { timeout: 10_000 }).toBe(1);
    const [waiting] = await cases();
    const headers = { ...as('chief'), ...CHANGING };
    const at = `${two}/mcp/console/api/approvals/${waiting?.id}`;
    const decided = await decideApproval(at, headers, { decision: 'approve' });
    expect(decided.status).toBe(200);
    expect((await updating).isError).toBe(false);
    const signOut = { ...CHANGING, ...session };
    expect((await get(`${two}/mcp/console/session`, signOut, { method: 'DELETE' })).status).toBe(200);
    expect((await get(`${one}/mcp/console/api/status`, session)).status).toBe(401);
  });
});

describe('the page of the console of an instance', () => {
  let browser: Browser;
  let origin: string;
  const complaints: string[] = [];
  beforeAll(async () => {
    [browser, origin] = await Promise.all([openBrowser(), applicationOf([NEWS, BILLING], { prefix: 'api' })]);
  }, 60_000);
  afterAll(async () => {
    await browser.close();
    await closeAll();
  });

  async function signedIn(page: Page, at: string, key: string): Promise<void> {
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (line) => {
      if (line.type() === 'error' && !line.text().includes('401')) complaints.push(line.text());
    });
    await page.addInitScript(
      'window.violations = []; addEventListener("securitypolicyviolation", (one) => violations.push(one.violatedDirective))',
    );
    await page.goto(`${origin}${at}#/overview`);
    await page.getByLabel('API key or access token').fill(key);
    await page.keyboard.press('Enter');
    await page.getByRole('navigation').waitFor();
  }

  it('signs operators in, shows what happened, and decides the approvals of its instance, apart from another', async () => {
    const context = await browser.newContext({ reducedMotion: 'reduce' });
    const [page, other] = [await context.newPage(), await context.newPage()];
    await signedIn(page, '/api/v1/mcp/console', KEYS.chief);
    // The second sign-in of the same browser leaves the first as it is.
    await signedIn(other, '/api/v1/billing/console', KEYS.biller);
    const updating = callTool(
      { url: `${origin}/api/v1/mcp` },
      'update_object',
      { class_name: 'Post', object_id: 'p02', fields: { title: 'New' } },
      as('writer'),
    );
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await page.getByRole('navigation').getByText('1 waiting').waitFor();
    expect(await other.getByText('1 waiting').count()).toBe(0);
    await page
      .getByRole('link', { name: /^Approvals/ })
      .first()
      .click();
    await page.getByRole('button', { name: /^Approve update_object/ }).click();
    await page.getByRole('listitem').getByText('update_object was approved').waitFor();
    expect((await updating).isError).toBe(false);
    await page.goto(`${origin}/api/v1/mcp/console#/audit?tool=update_object`);
    await page.locator('.record').first().waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download CSV' }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/^parley-audit-.*\.csv$/);
    // Live calls, over the stream of the instance.
    await page.goto(`${origin}/api/v1/mcp/console#/live`);
    await page.getByText('Watching').first().waitFor();
    await callTool({ url: `${origin}/api/v1/mcp` }, 'count_objects', { class_name: 'Post' }, as('writer'));
    await page.locator('.record', { hasText: 'count_objects' }).first().waitFor();

    const cookies = await context.cookies();
    expect(cookies.map(({ path }) => path).sort()).toEqual([
      '/api/v1/billing/console',
      '/api/v1/mcp/console',
    ]);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('You are signed out.').waitFor();
    await other.goto(`${origin}/api/v1/billing/console#/audit`);
    await other.reload();
    await other.getByRole('heading', { level: 1, name: 'Audit' }).waitFor();
    expect(await other.content()).not.toContain('update_object');
    for (const one of [page, other]) complaints.push(...(await one.evaluate<string[]>('window.violations')));
    expect(complaints).toEqual([]);
    await context.close();
  });

  it('is closed to a page of another port, to which a browser gives its cookies', async () => {
    const other = createServer((_, response) =>
      response.setHeader('Content-Type', 'text/html').end('<p>other'),
    );
    await once(other.listen(0, '127.0.0.1'), 'listening');
    const context = await browser.newContext();
    const [own, page] = [await context.newPage(), await context.newPage()];
    await signedIn(own, '/api/v1/mcp/console', KEYS.chief);
    const answers: string[] = [];
    const cookies: string[] = [];
    const server = (open[0] as INestApplication).getHttpServer() as Server;
    server.on('request', ({ url = '', headers }: IncomingMessage) => {
      if (url.endsWith('/api/status') && headers.origin !== undefined) cookies.push(headers.cookie ?? '');
    });
    page.on('response', (response) => {
      const { pathname } = new URL(response.url());
      if (pathname.startsWith('/api/')) answers.push(`${response.request().method()} ${response.status()}`);
    });
    await page.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`);
    const script = await own.locator('script').first().getAttribute('src');
    const tried = await page.evaluate<Record<string, string>>(`(async (at, script) => {
      const outcome = (asked) => asked.then(({ type, status }) => type + ' ' + status, (error) => error.name);
      const event = (one) => new Promise((resolve) => {
        one.onload = one.onmessage = () => resolve('loaded');
        one.onerror = () => resolve('refused');
      });
      const added = (name, source) => {
        const one = document.createElement(name);
        const done = event(one);
        one.src = source;
        document.body.append(one);
        return done;
      };
      const included = { credentials: 'include' };
      const header = { 'X-Parley-Console': '1' };
      const frame = added('iframe', at);
      return {
        read: await outcome(fetch(at + '/api/status', included)),
        'read without seeing': await outcome(fetch(at + '/api/status', { ...included, mode: 'no-cors' })),
        change: await outcome(fetch(at + '/session', { ...included, method: 'DELETE', headers: header })),
        'simple change': await outcome(fetch(at + '/session', { ...included, method: 'POST', mode: 'no-cors', body: '{}' })),
        watch: await event(new EventSource(at + '/api/live', { withCredentials: true })),
        script: await added('script', script),
        frame: await frame.then(() => {
          try {
            return document.querySelector('iframe').contentDocument ? 'readable' : 'closed';
          } catch {
            return 'closed';
          }
        }),
      };
    })(${JSON.stringify(`${origin}/api/v1/mcp/console`)}, ${JSON.stringify(`${origin}${script}`)})`);
    expect(tried).toEqual({
      read: 'TypeError',
      'read without seeing': 'TypeError',
      change: 'TypeError',
      'simple change': 'TypeError',
      watch: 'refused',
      script: 'refused',
      frame: 'closed',
    });
    // Page and scripts are public; all else was refused, whatever came with it.
    expect(answers.filter((answer) => !/^GET 200$| 403$/.test(answer))).toEqual([]);
    expect(cookies.join()).toContain('parley-console-');
    expect(
      await page
        .frames()[1]
        ?.locator('body')
        .textContent()
        .catch(() => ''),
    ).not.toContain('Parley');
    // A form leads there, and changes nothing.
    await page.evaluate(
      `document.body.innerHTML = '<form method="post" enctype="text/plain" action="${origin}/api/v1/mcp/console/session"><input name=a></form>'; document.forms[0].submit()`,
    );
    await page.getByText('only the console itself may ask this').waitFor();
    await own.reload();
    await own.getByRole('navigation').waitFor();
    await context.close();
    other.close();
  });
});
