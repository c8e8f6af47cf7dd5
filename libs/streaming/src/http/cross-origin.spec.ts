import { afterAll, describe, expect, it } from 'vitest';
import { openSession } from '../testing/calls.js';
import { type Answer, type Asked, edgeUnderTest, type EdgeUnderTest } from '../testing/edge-under-test.js';
import { modern, ping } from '../testing/requests.js';
import { DOWNLOADS } from './downloads.js';
import type { McpEdgeOptions } from './edge-dependencies.js';

const running: EdgeUnderTest[] = [];
async function startServing(options?: McpEdgeOptions): Promise<EdgeUnderTest> {
  const edge = await edgeUnderTest(options);
  running.push(edge);
  return edge;
}
afterAll(async () => {
  await Promise.all(running.map((edge) => edge.stop()));
});

const PAGE = 'https://app.example.com';
const LISTED = { allowedOrigins: [PAGE, '.example.org', 'chrome-extension://abcdef'] };
const crossOrigin = ({ headers }: Answer) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => /^access-control-|^vary$/.test(name)));
const preflight = (origin: string, wanted = 'content-type', method = 'POST'): Asked => ({
  method: 'OPTIONS',
  headers: {
    Origin: origin,
    'Access-Control-Request-Method': method,
    'Access-Control-Request-Headers': wanted,
  },
});
const usual = await startServing(LISTED);
const readAllowedHeaders = (answer: Answer) =>
  String(answer.headers['access-control-allow-headers']).toLowerCase().split(', ');

describe('a preflight', () => {
  it.each([PAGE, 'https://example.org', 'http://a.b.example.org:8080', 'chrome-extension://abcdef'])(
    'of a listed origin is answered before credentials: %s',
    async (origin) => {
      const answer = await usual.ask(preflight(origin));
      expect([answer.status, answer.text]).toEqual([204, '']);
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': origin,
        'access-control-allow-methods': 'GET, POST, DELETE, OPTIONS',
        vary: 'Origin',
      });
      expect(usual.authenticator.seen).toEqual([]);
    },
  );

  it('lists the headers of every revision and of every credential', async () => {
    const answer = await usual.ask(preflight(PAGE));
    for (const name of [
      'accept',
      'authorization',
      'content-type',
      'last-event-id',
      'mcp-method',
      'mcp-name',
      'mcp-protocol-version',
      'mcp-session-id',
      'x-mcp-api-key',
      'x-parse-session-token',
    ])
      expect(readAllowedHeaders(answer)).toContain(name);
  });

  it('is granted the required header and mirrored params, and no header that only a proxy sends', async () => {
    const { ask } = await startServing({ ...LISTED, requireCustomHeader: 'X-App' });
    const wanted = 'x-app,mcp-param-Region, x-forwarded-for,x-client-cert-subject, mcp-param-a:b';
    const answer = await ask(preflight(PAGE, wanted));
    expect(readAllowedHeaders(answer)).toEqual(expect.arrayContaining(['x-app', 'mcp-param-region']));
    for (const name of ['x-forwarded-for', 'x-client-cert-subject', 'mcp-param-a:b'])
      expect(readAllowedHeaders(answer)).not.toContain(name);
  });

  it('never permits credentials that a browser sends by itself', async () => {
    expect((await usual.ask(preflight(PAGE))).headers).not.toHaveProperty('access-control-allow-credentials');
  });

  it('of a page of the internet for a private address is granted to listed origins, where it asks', async () => {
    const asked = preflight(PAGE);
    const headers = { ...asked.headers, 'Access-Control-Request-Private-Network': 'true' };
    expect((await usual.ask({ ...asked, headers })).headers).toMatchObject({
      'access-control-allow-private-network': 'true',
    });
    expect((await usual.ask(asked)).headers).not.toHaveProperty('access-control-allow-private-network');
  });

  it.each([
    'https://evil.example',
    'http://app.example.com',
    'https://app.example.com:8443',
    'https://app.example.com.evil.example',
    'https://notexample.org',
    'null',
    `${PAGE}, ${PAGE}`,
    '*',
    'http://localhost:5173',
  ])('of another origin is answered as if there were none: %s', async (origin) => {
    const answer = await usual.ask(preflight(origin));
    expect([answer.status, crossOrigin(answer)]).toEqual([405, { vary: 'Origin' }]);
  });

  it.each([{ allowedOrigins: [] }, { allowedOrigins: [], loopbackOrigins: false }])(
    'is granted to nobody where no origin is listed: %j',
    async (options) => {
      const { ask } = await startServing(options);
      for (const origin of [PAGE, 'http://localhost:5173']) {
        expect(crossOrigin(await ask(preflight(origin)))).toEqual({});
        expect(crossOrigin(await ask({ headers: { Origin: origin }, body: ping() }))).toEqual({});
      }
    },
  );

  it('is no preflight without the method that it asks for', async () => {
    expect((await usual.ask({ method: 'OPTIONS', headers: { Origin: PAGE } })).status).toBe(405);
  });

  it('costs as much of the limit of an address as any request, and asks for a permitted host', async () => {
    const { ask } = await startServing({
      ...LISTED,
      preAuthRateLimiter: { check: () => Promise.resolve({ retryAfter: 1, limit: 1, window: 60 }) },
    });
    expect((await ask(preflight(PAGE))).status).toBe(429);
    const { headers } = preflight(PAGE);
    const rebound = { method: 'OPTIONS', headers: { ...headers, Host: 'evil.example' } };
    expect((await usual.ask(rebound)).status).toBe(403);
  });
});

describe('an answer to a page of a listed origin', () => {
  const SHOWN =
    'Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After, Content-Disposition, X-Request-Id';
  const requests: readonly (readonly [number, Asked])[] = [
    [200, { body: ping() }],
    [200, modern('tools/list')],
    [202, { body: { jsonrpc: '2.0', method: 'notifications/initialized' } }],
    [400, { body: '{' }],
    [401, { headers: { 'X-MCP-API-Key': 'wrong' }, body: ping() }],
    [403, { headers: { Host: 'evil.example' }, body: ping() }],
    [404, { path: '/mcp/x', body: ping() }],
    [405, { method: 'PUT' }],
    [415, { headers: { 'Content-Type': 'text/plain' }, body: ping() }],
    [431, { headers: { D0: Array<string>(1_000).fill('1') }, body: ping() }],
  ];

  it.each(requests)('may be read with status %i', async (status, asked) => {
    const answer = await usual.ask({ ...asked, headers: { ...asked.headers, Origin: PAGE } });
    expect([answer.status, crossOrigin(answer)]).toEqual([
      status,
      { 'access-control-allow-origin': PAGE, 'access-control-expose-headers': SHOWN, vary: 'Origin' },
    ]);
  });

  it.each(requests)('may not be read by another page with status %i', async (status, asked) => {
    const answer = await usual.ask({
      ...asked,
      headers: { ...asked.headers, Origin: 'https://evil.example' },
    });
    expect(crossOrigin(answer)).toEqual({ vary: 'Origin' });
  });

  it('differs by origin for caches, also where a request names none', async () => {
    expect(crossOrigin(await usual.ask({ body: ping() }))).toEqual({ vary: 'Origin' });
  });

  it('may be a stream', async () => {
    const asked = {
      method: 'GET',
      headers: { Accept: 'text/event-stream', Origin: PAGE, ...(await openSession(usual)) },
    };
    const stream = await usual.open(asked);
    expect([stream.status, stream.headers['access-control-allow-origin']]).toEqual([200, PAGE]);
    stream.leave();
  });
});

describe('a file', () => {
  it('may be read and revoked by pages of listed origins alone', async () => {
    const files = { open: () => Promise.resolve(undefined), revoke: () => Promise.resolve(false) };
    const edge = await edgeUnderTest(LISTED, undefined, files);
    running.push(edge);
    const path = `${DOWNLOADS}none`;
    const asked = await edge.ask({ ...preflight(PAGE, 'x-mcp-api-key', 'DELETE'), path });
    expect([asked.status, asked.headers['access-control-allow-methods']]).toEqual([
      204,
      'GET, DELETE, OPTIONS',
    ]);
    const headers = { 'X-MCP-API-Key': 'ada', Origin: PAGE };
    const missing = await edge.ask({ method: 'GET', path, headers });
    expect([missing.status, missing.headers['access-control-allow-origin']]).toEqual([404, PAGE]);
    const foreign = await edge.ask({ ...preflight('https://evil.example', 'x', 'GET'), path });
    expect([foreign.status, crossOrigin(foreign)]).toEqual([405, { vary: 'Origin' }]);
  });
});
