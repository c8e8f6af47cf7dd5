import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type RedisServer, startRedis } from '#state/contracts';
import { createServer } from 'node:http';
import { ClientCredentialsProvider } from '@modelcontextprotocol/client';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newKey } from '#auth';
import { freePort } from '../../../tools/free-port.mjs';
import { type AuthorizationServer, startAuthorizationServer } from '../../support/authorization-server.js';
import { connect, PersonsProvider, REDIRECT } from '../../support/oauth-host.js';
import { POSTS_SEED, POSTS_POLICY, SECRET } from '../../fixtures/posts.fixture.js';
import { callTool, post, rpc, type Service, startService, WRITES_OPEN } from '../../support/service.js';
import { listenFor, makeFolder } from '../../support/started.js';

const main = fileURLToPath(new URL('../../../dist/src/cli/main.js', import.meta.url));

/** `parley revoke`, as an operator runs it on any machine that reaches Redis. */
async function revoke(url: string, oauth: { issuer: string }, args: string[]): Promise<string> {
  const folder = makeFolder('revoke');
  const config = { redis: { url }, auth: [{ agent: 'default', oauth }] };
  writeFileSync(join(folder, 'parley.yaml'), JSON.stringify(config));
  const command = [main, 'revoke', '--issuer', oauth.issuer, ...args];
  return (await promisify(execFile)(process.execPath, command, { cwd: folder })).stdout;
}

const hashed = newKey();
const PROXY = { 'X-Client-Cert-Subject': 'CN=reports,O=Acme' };

let authorizationServer: AuthorizationServer;
let service: Service;
beforeAll(async () => {
  const free = await freePort();
  const resource = `http://127.0.0.1:${free}/mcp`;
  authorizationServer = await startAuthorizationServer({
    resource,
    scopes: ['parley:read', 'parley:write'],
    redirectUri: REDIRECT,
  });
  const unlimited = { rateLimit: 1_000_000 };
  const tenant = { tenantId: { claim: 'org_id' } };
  service = await startService({
    seed: POSTS_SEED,
    config: {
      agents: {
        reader: { ...unlimited, ...tenant, tools: { except: ['get_object'] } },
        writer: { ...unlimited, ...tenant, permissions: 'write' },
        tight: { rateLimit: 2, rateWindow: 600, tenantId: 'acme' },
        reports: { ...unlimited, tenantId: 'acme' },
      },
      auth: [
        {
          agent: 'reader',
          oauth: {
            issuer: authorizationServer.issuer,
            audience: resource,
            requiredScopes: ['parley:read'],
            scopes: { 'parley:write': 'writer' },
          },
        },
        { agent: 'tight', apiKeyHash: hashed.hash },
        {
          agent: 'reports',
          clientCertificate: {
            header: 'X-Client-Cert-Subject',
            trustedProxies: ['127.0.0.1'],
            subjects: ['CN=reports,O=Acme'],
          },
        },
      ],
      policy: POSTS_POLICY,
      approvals: { approvers: ['writer'] },
    },
    env: {
      PORT: String(free),
      ...WRITES_OPEN,
    },
  });
});

const metadataUrl = () => `${service.origin}/.well-known/oauth-protected-resource/mcp`;
const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${service.origin}${path}`, { headers });
async function tokenWith(scope: string): Promise<string> {
  const { token_endpoint } = (await (
    await fetch(`${authorizationServer.issuer}/.well-known/openid-configuration`)
  ).json()) as { token_endpoint: string };
  const response = await fetch(token_endpoint, {
    method: 'POST',
    headers: { Authorization: `Basic ${btoa('robot:robot-secret')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope, resource: service.url }),
  });
  return ((await response.json()) as { access_token: string }).access_token;
}
const bearer = async (scope: string) => ({ Authorization: `Bearer ${await tokenWith(scope)}` });
const credentials = () =>
  new ClientCredentialsProvider({
    clientId: 'robot',
    clientSecret: 'robot-secret',
    expectedIssuer: authorizationServer.issuer,
  });
const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]?.text ?? '';

describe('a host without a token', () => {
  it('is pointed to the metadata, on every route that authenticates', async () => {
    const challenge = `Bearer scope="parley:read", resource_metadata="${metadataUrl()}"`;
    const mcp = await rpc(service, 'tools/list');
    expect([mcp.status, mcp.body.error]).toEqual([401, { code: -32001, message: 'Unauthorized' }]);
    expect(mcp.headers.get('www-authenticate')).toBe(challenge);
    for (const path of ['/tools', '/approvals', '/approvals/x', '/exports/x']) {
      const response = await get(path);
      expect([path, response.status, response.headers.get('www-authenticate')]).toEqual([
        path,
        401,
        challenge,
      ]);
    }
  });

  it('finds the metadata of the resource at both places, from any origin', async () => {
    for (const path of ['', '/mcp', '/mcp/']) {
      const response = await get(`/.well-known/oauth-protected-resource${path}`, {
        Origin: 'https://inspector.example.com',
      });
      expect(response.headers.get('access-control-allow-origin')).toBe('*');
      expect(await response.json()).toEqual({
        resource: service.url,
        authorization_servers: [authorizationServer.issuer],
        bearer_methods_supported: ['header'],
        scopes_supported: ['parley:read'],
        resource_name: 'Parley',
      });
    }
    const preflight = await fetch(metadataUrl(), { method: 'OPTIONS' });
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, '*']);
    expect((await get('/.well-known/oauth-protected-resource/other')).status).toBe(404);
  });

  it('of an older revision finds the authorization server through this one', async () => {
    const response = await get('/.well-known/oauth-authorization-server');
    expect(await response.json()).toMatchObject({
      issuer: authorizationServer.issuer,
      code_challenge_methods_supported: ['S256'],
    });
  });

  it('finds no other document open to other origins', async () => {
    for (const path of ['/health', '/tools', '/approvals']) {
      const response = await get(path, { Origin: 'https://inspector.example.com' });
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
    }
  });
});

describe('the official client', () => {
  it('gets its token by itself, and steps up by itself when a call needs more', async () => {
    const provider = credentials();
    const { client } = await connect(service.url, provider);
    const listed = async () => (await client.listTools()).tools.map(({ name }) => name);
    expect(await listed()).not.toContain('create_object');
    expect(provider.tokens()).toMatchObject({ scope: 'parley:read' });
    const made = await client.callTool({
      name: 'create_object',
      arguments: { class_name: 'Post', fields: { title: 'Stepped up' } },
    });
    expect([made.isError, textOf(made)]).toEqual([false, expect.stringContaining('Stepped up')]);
    expect(provider.tokens()).toMatchObject({ scope: 'parley:read parley:write' });
    await client.close();
  });

  it('steps up in the legacy era as well, where answers are streams', async () => {
    const { client } = await connect(service.url, credentials(), 'legacy');
    const made = await client.callTool({
      name: 'create_object',
      arguments: { class_name: 'Post', fields: { title: 'Stepped up too' } },
    });
    expect(made.isError).toBe(false);
    await client.close();
  });

  it('signs a person in, and asks them again when a call needs more', async () => {
    const provider = new PersonsProvider();
    const { client, transport } = await connect(service.url, provider);
    expect(provider.askedFor).toEqual(['parley:read']);
    const count = await client.callTool({ name: 'count_objects', arguments: { class_name: 'Post' } });
    expect(count.isError).toBe(false);
    const read = () =>
      client.callTool({ name: 'get_object', arguments: { class_name: 'Post', object_id: 'p01' } });
    const post = await provider.signedIn(transport, read);
    expect(textOf(post)).toContain('Post 1');
    expect(provider.askedFor).toEqual(['parley:read', 'parley:read parley:write']);
    await client.close();
  });
});

describe('a token', () => {
  it('brings its tenant, which no argument changes', async () => {
    const headers = await bearer('parley:read');
    const seen = await callTool(service, 'query_class', { class_name: 'Post', limit: 200 }, headers);
    expect(seen.isError).toBe(false);
    expect(seen.wire).not.toContain(SECRET);
    const other = await callTool(
      service,
      'query_class',
      { class_name: 'Post', where: { orgId: 'globex' } },
      headers,
    );
    expect(other.isError).toBe(true);
  });

  it('that lacks the least scope is answered with all that are needed', async () => {
    const answer = await rpc(service, 'tools/list', {}, await bearer('parley:write'));
    expect(answer.status).toBe(403);
    expect(answer.headers.get('www-authenticate')).toBe(
      `Bearer error="insufficient_scope", scope="parley:read", resource_metadata="${metadataUrl()}"`,
    );
    const tools = await get('/tools', await bearer('parley:write'));
    expect([tools.status, tools.headers.get('www-authenticate')]).toEqual([
      403,
      expect.stringContaining('insufficient_scope'),
    ]);
  });

  it('is answered with the scopes of tools that they would show, and of no others', async () => {
    const headers = await bearer('parley:read');
    const call = (name: string) => rpc(service, 'tools/call', { name, arguments: {} }, headers);
    const shown = await call('get_object');
    expect(shown.status).toBe(403);
    expect(shown.body).toMatchObject({ error: { code: -32001, message: 'Insufficient scope' } });
    expect(shown.headers.get('www-authenticate')).toBe(
      `Bearer error="insufficient_scope", scope="parley:read parley:write", resource_metadata="${metadataUrl()}"`,
    );
    // One that no scope leads to is answered as one that there is not.
    for (const name of ['create_class', 'no_such_tool']) {
      const { status, headers: sent } = await call(name);
      expect([name, status, sent.get('www-authenticate')]).toEqual([name, 200, null]);
    }
  });

  it('in a batch is answered once with the scopes of all of it; nothing of it ran, and it may be sent again', async () => {
    const headers = await bearer('parley:read');
    const opened = await rpc(service, 'initialize', { protocolVersion: '2025-03-26' }, headers);
    const session = { 'Mcp-Session-Id': opened.headers.get('mcp-session-id') ?? '' };
    const send = (credential: Record<string, string>, ...calls: [string, object][]) =>
      post(
        service,
        JSON.stringify(
          calls.map(([name, args], id) => ({
            jsonrpc: '2.0',
            id,
            method: 'tools/call',
            params: { name, arguments: args },
          })),
        ),
        { ...session, ...credential },
      );
    const recorded = (tool: string) =>
      service
        .output()
        .stderr.split('\n')
        .filter((line) => line.includes(`tool=${tool} `)).length;
    const [counted, refused] = [recorded('count_objects'), recorded('create_object')];
    const lacking = await send(
      headers,
      ['count_objects', { class_name: 'Post' }],
      ['get_object', { class_name: 'Post', object_id: 'p01' }],
      ['create_object', { class_name: 'Post', fields: { title: 'never' } }],
    );
    expect(lacking.status).toBe(403);
    expect(lacking.headers.get('www-authenticate')).toBe(
      `Bearer error="insufficient_scope", scope="parley:read parley:write", resource_metadata="${metadataUrl()}"`,
    );
    expect(lacking.body).toMatchObject([
      { id: 0, error: { code: -32001, message: 'Not run: another message needs more scopes' } },
      { id: 1, error: { code: -32001, message: 'Insufficient scope' } },
      { id: 2, error: { code: -32001, message: 'Insufficient scope' } },
    ]);
    await expect.poll(() => recorded('create_object')).toBe(refused + 1);
    expect(recorded('count_objects')).toBe(counted);
    const again = await send(
      await bearer('parley:read parley:write'),
      ['count_objects', { class_name: 'Post' }],
      ['get_object', { class_name: 'Post', object_id: 'p01' }],
    );
    expect([again.status, again.body]).toMatchObject([
      200,
      [{ result: { isError: false } }, { result: { isError: false } }],
    ]);
    // A tool that no scope leads to does not turn the whole batch away.
    const unknown = await send(headers, ['count_objects', { class_name: 'Post' }], ['create_class', {}]);
    expect([unknown.status, unknown.headers.get('www-authenticate')]).toEqual([200, null]);
    expect(unknown.body).toMatchObject([{ result: { isError: false } }, { result: { isError: true } }]);
  });

  it('is answered with the scopes that lead to an agent that decides approvals', async () => {
    for (const path of ['/approvals', '/approvals/none']) {
      const refused = await get(path, await bearer('parley:read'));
      expect([path, refused.status, await refused.json()]).toEqual([
        path,
        403,
        { error: 'Insufficient scope' },
      ]);
      expect(refused.headers.get('www-authenticate')).toBe(
        `Bearer error="insufficient_scope", scope="parley:read parley:write", resource_metadata="${metadataUrl()}"`,
      );
    }
    const admitted = await get('/approvals', await bearer('parley:read parley:write'));
    expect([admitted.status, await admitted.json()]).toEqual([200, { approvals: [] }]);
    // No scope leads a certificate any further.
    const other = await get('/approvals', PROXY);
    expect([other.status, other.headers.get('www-authenticate')]).toEqual([403, null]);
  });

  it('that would need more leaves a record like every other refusal', async () => {
    const records = () =>
      service.output().stderr.match(/^.*tool=delete_object .*permission_denied.*$/gm) ?? [];
    const before = records().length;
    await rpc(service, 'tools/call', { name: 'delete_object', arguments: {} }, await bearer('parley:read'));
    await expect.poll(() => records().length).toBe(before + 1);
    expect(records().at(-1)).toContain(`oauth:${authorizationServer.issuer}|`);
  });

  it.each<[string, (token: string) => Record<string, string>, string]>([
    [
      'of which a letter was changed',
      (token) => ({ Authorization: `Bearer ${token.slice(0, -2)}xx` }),
      'invalid_token',
    ],
    [
      'signed with nothing',
      (token) => ({ Authorization: `Bearer ${token.split('.').slice(0, 2).join('.')}.` }),
      'invalid_token',
    ],
    ['in the header of keys', (token) => ({ 'X-MCP-API-Key': token }), ''],
    ['in another scheme', (token) => ({ Authorization: `Token ${token}` }), ''],
  ])('is refused %s', async (_, headersOf, error) => {
    const answer = await rpc(service, 'tools/list', {}, headersOf(await tokenWith('parley:read')));
    expect([answer.status, answer.text]).toEqual([
      401,
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Unauthorized"}}',
    ]);
    const challenge = answer.headers.get('www-authenticate') ?? '';
    expect(challenge.includes('invalid_token')).toBe(error !== '');
  });

  it('in the query string is none', async () => {
    const token = await tokenWith('parley:read');
    const url = `${service.url}?access_token=${token}`;
    expect((await rpc({ url }, 'tools/list')).status).toBe(401);
  });

  it('opens no session of another caller', async () => {
    const mine = await bearer('parley:read');
    const begun = await rpc(
      service,
      'initialize',
      { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
      mine,
    );
    const session = begun.headers.get('mcp-session-id') ?? '';
    const listen = (headers: Record<string, string>) =>
      fetch(service.url, { headers: { ...headers, Accept: 'text/event-stream', 'Mcp-Session-Id': session } });
    const other = await listen(PROXY);
    expect(other.status).not.toBe(200);
    await other.body?.cancel();
    const own = await listen(mine);
    expect(own.status).toBe(200);
    await own.body?.cancel();
  });

  it('is in no line of the log', async () => {
    const token = await tokenWith('parley:read');
    await rpc(service, 'tools/list', {}, { Authorization: `Bearer ${token}x` });
    const { stdout, stderr } = service.output();
    for (const part of token.split('.')) expect(`${stdout}${stderr}`).not.toContain(part);
  });
});

describe('other credentials beside tokens', () => {
  it('are a key of which the file holds only a hash, with the limits of its own agent', async () => {
    const headers = { 'X-MCP-API-Key': hashed.key };
    const call = () => callTool(service, 'count_objects', { class_name: 'Post' }, headers);
    expect([(await call()).isError, (await call()).isError, (await call()).code]).toEqual([
      false,
      false,
      'rate_limited',
    ]);
    expect((await rpc(service, 'tools/list', {}, { 'X-MCP-API-Key': hashed.hash })).status).toBe(401);
  });

  it('are a certificate that the proxy in front verified', async () => {
    expect((await rpc(service, 'tools/list', {}, PROXY)).status).toBe(200);
    const stranger = { 'X-Client-Cert-Subject': 'CN=root,O=Acme' };
    expect((await rpc(service, 'tools/list', {}, stranger)).status).toBe(401);
    const folded = { X_Client_Cert_Subject: 'CN=reports,O=Acme' };
    expect((await rpc(service, 'tools/list', {}, folded)).status).toBe(401);
  });
});

describe('a token that names a user', () => {
  let redis: RedisServer;
  let one: Service;
  const rules = () => ({
    issuer: authorizationServer.issuer,
    audience: service.url,
    clockSkew: 0,
    revocationList: true,
  });
  beforeAll(async () => {
    redis = await startRedis();
    one = await startService({
      seed: POSTS_SEED,
      config: {
        redis: { url: redis.url },
        agents: { person: { identity: { claim: 'parse_user' }, tenantId: { claim: 'org_id' } } },
        auth: [{ agent: 'person', oauth: rules() }],
        policy: POSTS_POLICY,
      },
    });
  });
  afterAll(async () => {
    await one.stop();
    await redis.stop();
  });

  it('reads with the rights of that user, who has to exist', async () => {
    const known = await callTool(one, 'count_objects', { class_name: 'Post' }, await bearer('parley:read'));
    expect([known.isError, known.text]).toEqual([false, expect.anything()]);
    await expect.poll(() => one.output().stderr).toMatch(/tool=count_objects .* user=u1/);
    const ghost = await rpc(one, 'tools/list', {}, await bearer('parley:read parley:write'));
    expect(ghost.status).toBe(401);
  });

  it('is good for nothing once an operator took it back, and a later one is', async () => {
    const before = await bearer('parley:read');
    const asked = async (headers: Record<string, string>) =>
      (await rpc(one, 'tools/list', {}, headers)).status;
    expect(await asked(before)).toBe(200);
    const config = await revoke(redis.url, rules(), ['--client', 'robot']);
    expect(config).toContain('revoked');
    expect(await asked(before)).toBe(401);
    await expect.poll(async () => asked(await bearer('parley:read')), { timeout: 20_000 }).toBe(200);
    expect(await asked(before)).toBe(401);
  });

  it('stays revoked for the longest time that an operator named', async () => {
    const client = new Redis(redis.url);
    const left = async () => {
      const times = await Promise.all((await client.keys('*revoked*')).map((key) => client.pttl(key)));
      return Math.max(...times);
    };
    await revoke(redis.url, rules(), ['--subject', 'ada', '--for', '3600000']);
    expect(await left()).toBeGreaterThan(3_000_000_000);
    await revoke(redis.url, rules(), ['--subject', 'ada', '--for', '60']);
    expect(await left()).toBeGreaterThan(3_000_000_000);
    await revoke(redis.url, rules(), ['--subject', 'ada', '--for', '7200000']);
    expect(await left()).toBeGreaterThan(6_000_000_000);
    await client.quit();
  });
});

describe('an authorization server that is away', () => {
  it('has another answer than a bad token, and admits nobody', async () => {
    const away = createServer((_, response) => void response.destroy());
    const { origin: issuer, close } = await listenFor(away);
    const one = await startService({
      seed: POSTS_SEED,
      config: {
        agents: { reader: {} },
        auth: [{ agent: 'reader', oauth: { issuer, audience: 'https://parley.example.com/mcp' } }],
        policy: { unlistedClasses: 'allow' },
      },
    });
    try {
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const token = `${part({ alg: 'RS256', kid: 'k' })}.${part({ iss: issuer, sub: 'ada' })}.c2ln`;
      const headers = { Authorization: `Bearer ${token}` };
      const answer = await rpc(one, 'tools/list', {}, headers);
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
      expect((await fetch(`${one.origin}/tools`, { headers })).status).toBe(503);
      expect((await fetch(`${one.origin}/.well-known/oauth-authorization-server`)).status).toBe(503);
      const metadata = await fetch(`${one.origin}/.well-known/oauth-protected-resource/mcp`);
      expect(await metadata.json()).toMatchObject({ resource: 'https://parley.example.com/mcp' });
    } finally {
      await one.stop();
      await close();
    }
  });
});
