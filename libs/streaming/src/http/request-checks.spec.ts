import { afterAll, describe, expect, it } from 'vitest';
import { ProcessRateLimiter } from '#core';
import { edgeUnderTest, type EdgeUnderTest } from '../testing/edge-under-test.js';
import { deep, REFUSALS } from '../testing/refusals.fixture.js';
import { initialize, modern, ping } from '../testing/requests.js';
import type { McpEdgeOptions } from './edge-dependencies.js';
import { REQUEST_CHECKS } from './mcp-edge.js';

/** Checks that refuse nothing by themselves, or whose refusal needs more than one request. */
const WITHOUT_A_ROW = [
  'accepting',
  'preflight',
  'era',
  'batch-session',
  'spoken-version',
  'acknowledge',
  'turn',
  'dispatch',
];

const running: EdgeUnderTest[] = [];
async function startServing(options?: McpEdgeOptions): Promise<EdgeUnderTest> {
  const edge = await edgeUnderTest(options);
  running.push(edge);
  return edge;
}
const usual = await startServing();
afterAll(async () => {
  await Promise.all(running.map((edge) => edge.stop()));
});

describe('the list of request checks', () => {
  it.each(REFUSALS)(
    '$requestCheck answers when: $when',
    async ({ requestCheck, asked, options, status, code, message, id, data, headers }) => {
      const { ask, authenticator } = options ? await startServing(options) : usual;
      const before = authenticator.seen.length;
      const answer = await ask(asked);
      expect(answer.json()).toEqual({
        jsonrpc: '2.0',
        id: id ?? null,
        error: { code, message, ...(data !== undefined && { data }) },
      });
      expect(answer.status).toBe(status);
      expect(answer.headers).toMatchObject({ 'content-type': 'application/json', ...headers });
      const costsAuthentication = ['authenticate', 'request-limit', 'session'].includes(requestCheck);
      expect(authenticator.seen.length - before).toBe(costsAuthentication ? 1 : 0);
    },
  );

  it('has a row for every check that refuses', () => {
    const covered = new Set([...REFUSALS.map(({ requestCheck }) => requestCheck), ...WITHOUT_A_ROW]);
    expect(REQUEST_CHECKS.map(({ name }) => name).filter((name) => !covered.has(name))).toEqual([]);
  });

  it('lets the first of several failing checks answer, in the order of the list', async () => {
    const order = REQUEST_CHECKS.map(({ name }) => name);
    const rows = REFUSALS.filter(({ options, asked }) => !options && asked.method === undefined);
    for (const first of rows) {
      for (const second of rows) {
        if (order.indexOf(first.requestCheck) >= order.indexOf('json')) continue;
        if (order.indexOf(first.requestCheck) >= order.indexOf(second.requestCheck)) continue;
        const asked = {
          ...second.asked,
          ...first.asked,
          headers: { ...second.asked.headers, ...first.asked.headers },
        };
        const answer = await usual.ask({ ...asked, body: second.asked.body });
        expect([first.when, second.when, answer.status]).toEqual([first.when, second.when, first.status]);
      }
    }
  });
});

describe('what passes the list of request checks', () => {
  it.each(['/mcp', '/mcp/', '/mcp?x=1'])('serves %s', async (path) => {
    expect((await usual.ask({ path, body: ping() })).json()).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
  });

  it.each(['localhost', 'LOCALHOST:3001', '127.0.0.1', '[::1]:80'])(
    'takes the loopback name %s',
    async (host) => {
      expect((await usual.ask({ headers: { Host: host }, body: ping() })).status).toBe(200);
    },
  );

  it.each([
    'application/json',
    'text/plain',
    'application/json, */*;q=0',
    'application/json;q=0.001',
    'text/plain;q=0, */*;q=0.1',
    'application/*;q=0.5, */*;q=0',
  ])('answers JSON to a client that takes %s', async (accept) => {
    expect((await usual.ask({ headers: { Accept: accept }, body: ping() })).status).toBe(200);
  });

  it.each(['http://localhost:5173', 'https://127.0.0.1', 'http://[::1]:1'])(
    'takes the loopback page %s',
    async (origin) => {
      expect((await usual.ask({ headers: { Origin: origin }, body: ping() })).status).toBe(200);
    },
  );

  it.each(['application/json; charset=utf-8', 'Application/JSON'])(
    'takes the media type %s',
    async (type) => {
      expect((await usual.ask({ headers: { 'Content-Type': type }, body: ping() })).status).toBe(200);
    },
  );

  it('takes 20 levels, and brackets inside strings without number', async () => {
    expect((await usual.ask({ body: deep(19) })).status).toBe(200);
    const quoted = { ...ping(), params: { text: `"\\${'['.repeat(50)}` } };
    expect((await usual.ask({ body: quoted })).status).toBe(200);
  });

  it('reads a body of undeclared length where that is allowed', async () => {
    const { ask } = await startServing({ requireContentLength: false });
    const headers = { 'Transfer-Encoding': 'chunked', 'Content-Length': null };
    expect((await ask({ headers, body: ping() })).status).toBe(200);
  });

  it.each(['initialize', 'notifications/cancelled'])('asks no version of %s', async (method) => {
    const headers = { 'MCP-Protocol-Version': 'bogus' };
    const answer = await usual.ask({ headers, body: { ...initialize(), method } });
    expect(answer.status).toBe(method === 'initialize' ? 200 : 202);
  });

  it('decodes a base64 name before it compares', async () => {
    const asked = modern('tools/call', { name: 'echo' }, { 'Mcp-Name': '=?base64?ZWNobw==?=' });
    expect((await usual.ask(asked)).status).toBe(200);
  });

  it('spends the limit of each request once', async () => {
    const { ask } = await startServing({
      preAuthRateLimiter: new ProcessRateLimiter({ limit: 2, window: 60 }),
    });
    const statuses = [];
    for (let at = 0; at < 3; at += 1) statuses.push((await ask({ body: ping() })).status);
    expect(statuses).toEqual([200, 200, 429]);
  });
});
