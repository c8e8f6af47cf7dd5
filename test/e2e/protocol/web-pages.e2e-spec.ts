import { ConsoleLogger, type INestApplication } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ParleyModule, type ParleyModuleOptions } from '@parley/server';
import { freePort } from '../../../tools/free-port.mjs';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { type AuthorizationServer, startAuthorizationServer } from '../../support/authorization-server.js';
import { openBrowser } from '../../support/browser.js';
import { type Database, type Service, startDatabase, startService } from '../../support/service.js';
import { listenFor } from '../../support/started.js';

const KEY = 'key-of-the-page';
const COUNT = { name: 'count_objects', args: { class_name: 'Post' } };
const entry = fileURLToPath(new URL('../../support/page-client.mjs', import.meta.url));

/** Serves a page with the official client. Its origin is another one than that of the service. */
async function startSite() {
  const bundle = await rolldown({ input: entry, platform: 'browser' });
  const { output } = await bundle.generate({ format: 'iife', codeSplitting: false });
  const script = output[0].code;
  const server = createServer((request, response) => {
    const isScript = request.url === '/client.js';
    response.writeHead(200, { 'Content-Type': isScript ? 'text/javascript' : 'text/html' });
    response.end(isScript ? script : '<!doctype html><title>page</title><script src="/client.js"></script>');
  });
  const { port, close } = await listenFor(server);
  return { origin: `http://localhost:${port}`, close };
}

interface ToolOfPage {
  readonly url: string;
  readonly key?: string;
  readonly mode?: 'auto' | 'legacy';
  readonly name?: string;
  readonly args?: object;
}
const callFrom = (page: Page, asked: ToolOfPage): Promise<string> =>
  page.evaluate(
    (given) => (globalThis as unknown as { callTool: (of: object) => Promise<string> }).callTool(given),
    { mode: 'auto', ...COUNT, ...asked },
  );
/** What a script of the page reads of an answer; null: nothing. */
const readFrom = (page: Page, url: string, init: RequestInit = {}): Promise<number | null> =>
  page.evaluate(
    ([to, how]) =>
      fetch(to, how).then(
        ({ status }) => status,
        () => null,
      ),
    [url, init] as const,
  );
const POST = {
  method: 'POST',
  headers: { 'Content-Type': 'application/json', 'X-MCP-API-Key': KEY },
  body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
};

let browser: Browser;
let site: Awaited<ReturnType<typeof startSite>>;
let stranger: Awaited<ReturnType<typeof startSite>>;
beforeAll(async () => {
  [browser, site, stranger] = await Promise.all([openBrowser(), startSite(), startSite()]);
});
afterAll(async () => {
  await browser.close();
});

async function pageOf(origin: string): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(`${origin}/`);
  return page;
}

const agents = { reader: { permissions: 'readonly', tenantId: 'acme', rateLimit: 1_000_000 } };

describe('a page of another origin with the official client', () => {
  let service: Service;
  let authorizationServer: AuthorizationServer;
  beforeAll(async () => {
    const port = await freePort();
    const resource = `http://127.0.0.1:${port}/mcp`;
    authorizationServer = await startAuthorizationServer({
      resource,
      scopes: ['parley:read'],
      redirectUri: `${site.origin}/`,
    });
    const oauth = {
      issuer: authorizationServer.issuer,
      audience: resource,
      requiredScopes: ['parley:read'],
    };
    service = await startService({
      seed: POSTS_SEED,
      config: {
        server: { allowedOrigins: [site.origin] },
        agents,
        auth: [
          { apiKey: KEY, agent: 'reader' },
          { oauth, agent: 'reader' },
        ],
        policy: POSTS_POLICY,
        console: { operators: ['reader'] },
      },
      env: { PORT: String(port) },
    });
  });
  afterAll(async () => {
    await service.stop();
    await authorizationServer.close();
  });

  it.each(['auto', 'legacy'] as const)('calls a tool with a key where it is listed (%s)', async (mode) => {
    const page = await pageOf(site.origin);
    expect(await callFrom(page, { url: service.url, key: KEY, mode })).toContain('"count"');
    expect(await callFrom(page, { url: service.url, key: 'wrong', mode })).toMatch(
      /^failed: .*401|Unauthorized/,
    );
    await page.close();
  });

  it('signs in with OAuth where it is listed, and calls a tool then', async () => {
    const page = await pageOf(site.origin);
    const back = page.waitForURL(/[?&]code=/);
    await callFrom(page, { url: service.url }).catch(() => 'left for the authorization server');
    await back;
    await page.evaluate(
      (url) => (globalThis as unknown as { finishSignIn: (to: string) => Promise<void> }).finishSignIn(url),
      service.url,
    );
    expect(await callFrom(page, { url: service.url })).toContain('"count"');
    await page.close();
  });

  it('reads what agents ask beside MCP where it is listed', async () => {
    const page = await pageOf(site.origin);
    const { headers } = POST;
    const asked = (path: string) => readFrom(page, `${service.origin}${path}`, { headers });
    expect(await asked('/tools')).toBe(200);
    expect(await asked('/approvals')).toBe(403);
    expect(await asked('/exports/none')).toBe(404);
    await page.close();
  });

  it('reads neither probes nor the console, wherever it comes from', async () => {
    for (const { origin } of [site, stranger]) {
      const page = await pageOf(origin);
      for (const path of ['/health', '/ready', '/console', '/console/api/status', '/'])
        expect([path, await readFrom(page, `${service.origin}${path}`)]).toEqual([path, null]);
      await page.close();
    }
  });

  it('gets nothing where it is not listed, with a right key either', async () => {
    const page = await pageOf(stranger.origin);
    expect(await callFrom(page, { url: service.url, key: KEY })).toMatch(/^failed: .*fetch/);
    expect(await readFrom(page, service.url, POST)).toBeNull();
    for (const path of ['/tools', '/approvals', '/exports/none'])
      expect(await readFrom(page, `${service.origin}${path}`)).toBeNull();
    await page.close();
  });
});

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('a page and an application on %s that has a CORS of its own for every origin', (_, adapter) => {
  let database: Database;
  let app: INestApplication;
  let origin: string;
  const warnings: string[] = [];
  beforeAll(async () => {
    database = await startDatabase(POSTS_SEED);
    const options = {
      server: { allowedOrigins: [site.origin] },
      agents,
      auth: [{ apiKey: KEY, agent: 'reader' }],
      policy: POSTS_POLICY,
      database: { uri: database.uri, name: 'parley' },
    } as unknown as ParleyModuleOptions;
    const compiled = await Test.createTestingModule({ imports: [ParleyModule.forRoot(options)] }).compile();
    app = compiled.createNestApplication(adapter() as never, {
      logger: new (class extends ConsoleLogger {
        override warn = (line: string) => void warnings.push(line);
        override log = () => undefined;
      })(),
    });
    app.enableCors({ origin: true, credentials: true });
    await app.listen(0, '127.0.0.1');
    origin = new URL(await app.getUrl()).origin.replace('[::1]', '127.0.0.1');
  });
  afterAll(async () => {
    await app.close();
    await database.stop();
  });

  it('call where the page is listed, and not otherwise', async () => {
    const listed = await pageOf(site.origin);
    expect(await callFrom(listed, { url: `${origin}/mcp`, key: KEY })).toContain('"count"');
    await listed.close();
    const other = await pageOf(stranger.origin);
    expect(await callFrom(other, { url: `${origin}/mcp`, key: KEY })).toMatch(/^failed: .*fetch/);
    expect(await readFrom(other, `${origin}/mcp/tools`, { headers: { 'X-MCP-API-Key': KEY } })).toBeNull();
    expect(await readFrom(other, `${origin}/of-the-application`)).toBe(404);
    await other.close();
  });

  it('say once in the log which option lets the page call', () => {
    const about = warnings.filter((line) => line.startsWith('Origin refused'));
    expect(about).toEqual([
      `Origin refused: "${stranger.origin}" (server.allowedOrigins; CORS of an application does not apply to MCP)`,
    ]);
  });

  it('name one origin in an answer, once, and no credentials', async () => {
    const requests: readonly RequestInit[] = [
      { ...POST, headers: { ...POST.headers, Origin: site.origin } },
      {
        method: 'OPTIONS',
        headers: { Origin: site.origin, 'Access-Control-Request-Method': 'POST' },
      },
    ];
    for (const init of requests) {
      const { headers } = await fetch(`${origin}/mcp`, init);
      expect(headers.get('access-control-allow-origin')).toBe(site.origin);
      expect(headers.get('vary')).toBe('Origin');
      expect(headers.get('access-control-allow-credentials')).toBeNull();
    }
  });
});
