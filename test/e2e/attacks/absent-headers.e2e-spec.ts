import type { INestApplication } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import type { Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ParleyModule, type ParleyModuleOptions } from '@parley/server';
import { POSTS_CONFIG, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import {
  type AppendingProxy,
  fillers,
  sendBytes,
  startAppendingProxy,
  statusesIn,
} from '../../support/appending-proxy.js';
import { type Database, type Service, startDatabase, startService } from '../../support/service.js';

const MESSAGE = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
const ANONYMOUS = {
  ...POSTS_CONFIG,
  agents: { ...POSTS_CONFIG.agents, chief: { permissions: 'readonly', tenantId: 'acme' } },
  auth: [...POSTS_CONFIG.auth, { apiKey: 'a-key-of-the-chief-alone', agent: 'chief' }],
  console: { operators: ['chief'] },
};

interface Sent {
  readonly path?: string;
  readonly host?: string | null;
  readonly headers?: readonly string[];
  readonly version?: string;
  readonly method?: string;
}

/** One request as its sender writes it; `headers` come first. */
function written({ path = '/mcp', host = 'localhost', headers = [], version = '1.1', method }: Sent): string {
  const isMessage = path.endsWith('/mcp');
  const verb = method ?? (isMessage ? 'POST' : 'GET');
  const body = verb === 'POST' ? MESSAGE : '';
  return [
    `${verb} ${path} HTTP/${version}`,
    ...(host === null ? [] : [`Host: ${host}`]),
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    ...headers,
    '',
    body,
  ].join('\r\n');
}

const statusOf = async (port: number, sent: Sent) => statusesIn(await sendBytes(port, written(sent)))[0];

/** Beside MCP, each with what a local caller gets there. */
const ROUTES = ['/tools', '/approvals', '/exports/none', '/health', '/ready'] as const;
const ADDITIONAL = [990, 997, 998, 999, 1_000, 1_001, 1_020, 1_024, 1_050, 1_500];

describe('a caller from outside, behind a proxy of this machine', () => {
  let service: Service;
  let proxy: AppendingProxy;
  let port: number;
  beforeAll(async () => {
    service = await startService({ seed: POSTS_SEED, config: ANONYMOUS });
    port = Number(new URL(service.origin).port);
    proxy = await startAppendingProxy(port);
  });
  afterAll(async () => {
    await proxy.stop();
    await service.stop();
  });

  it('is not the anonymous caller, while a program of this machine is', async () => {
    expect(await statusOf(port, {})).toBe(200);
    expect(await statusOf(proxy.port, {})).toBe(401);
  });

  it.each(ADDITIONAL)('is not the anonymous caller with %i more headers either', async (count) => {
    expect([401, 431]).toContain(await statusOf(proxy.port, { headers: fillers(count) }));
  });

  it('is answered 431 by every route from 1,000 headers on', async () => {
    for (const path of ['/mcp', '/', '/console', '/console/api/status', '/mcp/x', ...ROUTES])
      expect([path, await statusOf(proxy.port, { path, headers: fillers(1_000) })]).toEqual([path, 431]);
  });

  it('is told why, and that fewer headers are read', async () => {
    const received = await sendBytes(proxy.port, written({ headers: fillers(1_000) }));
    expect(received).toContain('"message":"Request Header Fields Too Large: send fewer than 1000 headers"');
  });

  it('is not the anonymous caller by the name of the service, even where the proxy adds no header', async () => {
    const silent = await startAppendingProxy(port, []);
    for (const host of ['parley.example', '203.0.113.1', 'localhost.evil.example'])
      expect([401, 403]).toContain(await statusOf(silent.port, { host }));
    await silent.stop();
  });

  it.each([
    ['in any spelling', ['x-FORWARDED-for: 127.0.0.1']],
    ['with underscores beside it', ['X_Forwarded_For: 127.0.0.1', 'X-Forwarded-For: 127.0.0.1']],
    ['empty', ['X-Forwarded-For:']],
    ['twice', ['Via: 1.1 a', 'Via: 1.1 b']],
    ['of its own maker', ['X-Forwarded-Server: a']],
    ['of Cloudflare', ['CF-Connecting-IP: 127.0.0.1']],
    ['of Envoy', ['X-Envoy-External-Address: 127.0.0.1']],
    ['that names the client', ['True-Client-IP: 127.0.0.1']],
  ])('is recognised by a forwarding header %s', async (_, headers) => {
    expect(await statusOf(port, { headers })).toBe(401);
  });

  it.each([
    ['without Host', { host: null, version: '1.0' }],
    ['with two hosts', { headers: ['Host: localhost'] }],
  ])('is not the anonymous caller %s', async (_, sent) => {
    expect([400, 401, 403]).toContain(await statusOf(port, sent));
  });

  it('is not the anonymous caller in the second of two requests of one connection', async () => {
    const first = written({ headers: [] }).replace('Connection: close', 'Connection: keep-alive');
    const second = written({ headers: [...fillers(1_000), 'X-Forwarded-For: 203.0.113.9'] });
    expect(statusesIn(await sendBytes(port, first + second))).toEqual([200, 431]);
  });

  it('is not the anonymous caller because of what it writes after the body', async () => {
    const head = written({ headers: ['X-Forwarded-For: 203.0.113.9', 'Trailer: X-Forwarded-For'] });
    expect(statusesIn(await sendBytes(port, head))).toEqual([401]);
  });
});

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('a caller from outside, behind a proxy of an application on %s', (_, adapter) => {
  let database: Database;
  let app: INestApplication;
  let proxy: AppendingProxy;
  let server: Server;
  beforeAll(async () => {
    database = await startDatabase(POSTS_SEED);
    const options = {
      ...ANONYMOUS,
      database: { uri: database.uri, name: 'parley' },
      endpoints: { health: true },
    } as unknown as ParleyModuleOptions;
    const compiled = await Test.createTestingModule({ imports: [ParleyModule.forRoot(options)] }).compile();
    app = compiled.createNestApplication(adapter() as never, { logger: false });
    await app.listen(0, '127.0.0.1');
    server = app.getHttpServer() as Server;
    proxy = await startAppendingProxy(Number(new URL(await app.getUrl()).port));
  });
  afterAll(async () => {
    await proxy.stop();
    await app.close();
    await database.stop();
  });

  it('is not the anonymous caller, whatever number of headers it sends', async () => {
    for (const count of [0, ...ADDITIONAL])
      expect([401, 431]).toContain(await statusOf(proxy.port, { headers: fillers(count) }));
    expect(await statusOf(Number(new URL(await app.getUrl()).port), {})).toBe(200);
  });

  it.each([50, 64, 1_200])('is answered 431 where the application keeps %i headers', async (kept) => {
    server.maxHeadersCount = kept;
    for (const path of ['/mcp', ...ROUTES.map((route) => `/mcp${route}`)])
      for (const count of [kept - 10, kept, kept + 40]) {
        const status = await statusOf(proxy.port, { path, headers: fillers(count) });
        const right = count >= kept ? [431] : path === '/mcp' ? [401, 431] : [status];
        expect([path, count, right.includes(status)]).toEqual([path, count, true]);
      }
    server.maxHeadersCount = null;
  });
});
