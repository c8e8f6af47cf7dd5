import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { newKey, createSlowHash } from '#auth';
import { AUDIENCE, type SmallIssuer, startIssuer } from '#auth/contracts';
import { PATIENTS_SEED, withSession } from '../../fixtures/patients.fixture.js';
import { callModern } from '../../support/modern-call.js';
import { openSession, rpc, type Service, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

type Headers = Record<string, string>;

const WAIT = { timeout: 20_000, interval: 50 };
const folder = makeFolder('credentials');
const LOG = join(folder, 'audit.jsonl');
const generated = newKey();
const free = { rateLimit: 1_000_000 };

let issuer: SmallIssuer;
let service: Service;
let token: string;
beforeAll(async () => {
  issuer = await startIssuer();
  token = await issuer.token();
  service = await startService({
    seed: PATIENTS_SEED,
    config: {
      server: { publicUrl: AUDIENCE },
      agents: Object.fromEntries(
        ['chosen', 'plain', 'digest', 'tokens', 'endUser', 'reports'].map((name) => [name, free]),
      ),
      auth: [
        { apiKeyHash: await createSlowHash('chosen-by-a-person'), agent: 'chosen' },
        { apiKey: 'plain-key', agent: 'plain' },
        { apiKeyHash: generated.hash, agent: 'digest' },
        { oauth: { issuer: issuer.issuer, audience: AUDIENCE }, agent: 'tokens' },
        { parseSession: true, agent: 'endUser' },
        {
          clientCertificate: {
            header: 'X-Client-Cert-Subject',
            trustedProxies: ['127.0.0.1', '::1'],
            subjects: ['CN=reports'],
          },
          agent: 'reports',
        },
      ],
      console: { operators: ['plain'] },
      approvals: { mode: 'desk', approvers: ['plain', 'digest', 'tokens', 'endUser', 'reports', 'chosen'] },
      policy: { unlistedClasses: 'allow', requireApprovalFor: ['admin'] },
      audit: { sinks: [{ kind: 'file', path: LOG }] },
    },
  });
});
afterAll(async () => {
  await service.stop();
  await issuer.close();
});

/** Each kind of credential as it is shown, right and wrong. */
const kinds: Record<
  string,
  { readonly right: () => Headers; readonly wrong: () => Headers | Promise<Headers> }
> = {
  'key header': {
    right: () => ({ 'X-MCP-API-Key': 'plain-key' }),
    wrong: () => ({ 'X-MCP-API-Key': 'Plain-key' }),
  },
  'generated key header': {
    right: () => ({ 'X-MCP-API-Key': generated.key }),
    wrong: () => ({ 'X-MCP-API-Key': newKey().key }),
  },
  'key as bearer': {
    right: () => ({ Authorization: 'Bearer plain-key' }),
    wrong: () => ({ Authorization: 'Bearer other-key' }),
  },
  token: {
    right: () => ({ Authorization: `Bearer ${token}` }),
    wrong: async () => ({
      Authorization: `Bearer ${await issuer.token({ aud: 'https://elsewhere.example' })}`,
    }),
  },
  'basic credentials': {
    right: () => ({}),
    wrong: () => ({ Authorization: `Basic ${Buffer.from('a:b').toString('base64')}` }),
  },
  session: {
    right: () => withSession('bob'),
    wrong: () => ({ 'X-Parse-Session-Token': 'r:of-nobody' }),
  },
  certificate: {
    right: () => ({ 'X-Client-Cert-Subject': 'CN=reports' }),
    wrong: () => ({ 'X-Client-Cert-Subject': 'CN=somebody' }),
  },
};
const headerOf: Record<string, string> = {
  'key header': 'key',
  'generated key header': 'key',
  'key as bearer': 'authorization',
  token: 'authorization',
  'basic credentials': 'authorization',
  session: 'session',
  certificate: 'certificate',
};
const pairs = Object.keys(kinds).flatMap((right) =>
  Object.keys(kinds).flatMap((wrong) =>
    right !== 'basic credentials' && headerOf[right] !== headerOf[wrong] ? [[right, wrong] as const] : [],
  ),
);

const statusOf = async (path: string, headers: Headers, verb = 'GET') => {
  const response = await fetch(`${service.origin}${path}`, { method: verb, headers });
  await response.body?.cancel();
  return response.status;
};

/** Every way in that asks who is calling. */
const ways: Record<string, (headers: Headers) => Promise<number>> = {
  'a call of an older revision': async (headers) => (await rpc(service, 'tools/list', {}, headers)).status,
  'a call of 2026-07-28': async (headers) =>
    (await callModern(service, 'list_tools', {}, { headers })).status,
  'a stream of events': (headers) => statusOf('/mcp', { Accept: 'text/event-stream', ...headers }),
  'the list of tools': (headers) => statusOf('/tools', headers),
  'the desk of approvals': (headers) => statusOf('/approvals', headers),
  'the download of an export': (headers) => statusOf('/exports/none.csv', headers),
};

describe('a credential that is no good beside one that is', () => {
  it.each(pairs)('is refused: right %s, wrong %s', async (right, wrong) => {
    const good = kinds[right]!.right();
    const both = { ...good, ...(await kinds[wrong]!.wrong()) };
    for (const [way, ask] of Object.entries(ways)) {
      expect([way, (await ask(good)) === 401]).toEqual([way, false]);
      expect([way, await ask(both)]).toEqual([way, 401]);
    }
  });

  it('is refused on the routes of the console too', async () => {
    const right = { 'X-MCP-API-Key': 'plain-key' };
    expect(await statusOf('/console/session', right)).toBe(200);
    const wrongs: Headers[] = [
      { 'X-Parse-Session-Token': 'r:of-nobody' },
      { Authorization: 'Bearer other-key' },
      { 'X-Client-Cert-Subject': 'CN=somebody' },
    ];
    for (const wrong of wrongs) expect(await statusOf('/console/session', { ...right, ...wrong })).toBe(401);
  });

  it('is refused in a second header of the same name', async () => {
    const ask = (values: string[]) =>
      new Promise<number>((resolve, reject) => {
        const asked = httpRequest(
          `${service.origin}/tools`,
          { headers: { Authorization: values } },
          (answer) => {
            answer.resume();
            resolve(answer.statusCode ?? 0);
          },
        );
        asked.on('error', reject).end();
      });
    expect(await ask(['Bearer plain-key'])).toBe(200);
    expect(await ask(['Bearer plain-key', 'Bearer other-key'])).toBe(401);
  });

  it('beside one that is good as well leaves the first rule to decide', async () => {
    const asked = async (headers: Headers) =>
      (await (await fetch(`${service.origin}/console/session`, { headers })).json()) as { agent?: string };
    const both = { 'X-MCP-API-Key': 'plain-key', ...withSession('bob'), Authorization: `Bearer ${token}` };
    expect(await asked(both)).toMatchObject({ agent: 'plain' });
  });

  it('is refused when a client ends a session', async () => {
    const right = { 'X-MCP-API-Key': 'plain-key' };
    const session = await openSession(service, right, '2025-06-18');
    await statusOf('/mcp', { ...session, 'X-Parse-Session-Token': 'r:of-nobody' }, 'DELETE');
    const opened = async () => rpc(service, 'tools/list', {}, session);
    expect((await opened()).status).toBe(200);
  });
});

describe('a flood of wrong keys', () => {
  it('refuses nobody who is known, and nobody whom a cheap rule knows', async () => {
    const chosen = { 'X-MCP-API-Key': 'chosen-by-a-person' };
    expect(await ways['the list of tools']!(chosen)).toBe(200);
    let flooding = true;
    let tried = 0;
    const flood = Array.from({ length: 16 }, async (_, client) => {
      while (flooding) {
        tried += 1;
        await statusOf('/tools', { 'X-MCP-API-Key': `guess-${client}-${tried}` });
      }
    });
    await vi.waitFor(() => expect(tried).toBeGreaterThan(16), WAIT);
    const good: Headers[] = [
      { 'X-MCP-API-Key': 'plain-key' },
      { 'X-MCP-API-Key': generated.key },
      { Authorization: `Bearer ${token}` },
      withSession('ada'),
      { 'X-Client-Cert-Subject': 'CN=reports' },
      chosen,
    ];
    const statuses: number[] = [];
    for (let again = 0; again < 5; again += 1)
      for (const headers of good) statuses.push(await ways['the list of tools']!(headers));
    flooding = false;
    await Promise.all(flood);
    expect(new Set(statuses)).toEqual(new Set([200]));
  });
});

describe('the record of who was not let in', () => {
  const refusals = () =>
    readFileSync(LOG, 'utf8')
      .split('\n')
      .filter((line) => line.includes('"type":"authentication"')).length;
  const unasked: [string, string, Headers][] = [
    ['GET', '/console', {}],
    ['GET', '/console/session', {}],
    ['GET', '/console/api/status', {}],
    ['GET', '/console/api/live', { Accept: 'text/event-stream' }],
    ['DELETE', '/console/session', { 'X-Parley-Console': '1' }],
    ['GET', '/health', {}],
    ['GET', '/ready', {}],
    ['GET', '/', {}],
    ['GET', '/tools', {}],
    ['GET', '/approvals', {}],
    ['GET', '/exports/none.csv', {}],
    ['GET', '/.well-known/oauth-protected-resource', {}],
    ['GET', '/mcp', { Accept: 'text/event-stream' }],
    ['DELETE', '/mcp', { 'Mcp-Session-Id': 'a-session' }],
    ['POST', '/mcp', {}],
  ];

  it('holds nothing of requests that showed no credential', async () => {
    await vi.waitFor(() => expect(refusals()).toBeGreaterThan(0), WAIT);
    // Those of the tests before are written by now or in a moment.
    await new Promise((resolve) => setTimeout(resolve, 500));
    const before = refusals();
    for (const [verb, path, headers] of unasked) await statusOf(path, headers, verb);
    await rpc(service, 'tools/list');
    await callModern(service, 'list_tools', {});
    expect(await statusOf('/tools', { 'X-MCP-API-Key': 'wrong-at-last' })).toBe(401);
    await vi.waitFor(() => expect(refusals()).toBe(before + 1), WAIT);
  });

  it.each<[string, string, Headers]>([
    ['a wrong key at the page', '/console/session', { 'X-MCP-API-Key': 'wrong' }],
    ['a cookie that nobody sealed', '/console/session', { Cookie: 'parley-console=forged' }],
    ['a wrong key for the tools', '/tools', { 'X-MCP-API-Key': 'wrong' }],
    ['a wrong session at the desk', '/approvals', { 'X-Parse-Session-Token': 'r:wrong' }],
    ['basic credentials', '/tools', { Authorization: 'Basic YTpi' }],
    ['a certificate of nobody', '/tools', { 'X-Client-Cert-Subject': 'CN=nobody' }],
  ])('holds %s', async (_, path, headers) => {
    const before = refusals();
    expect(await statusOf(path, headers)).toBe(401);
    await vi.waitFor(() => expect(refusals()).toBe(before + 1), WAIT);
  });
});
