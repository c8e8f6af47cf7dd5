import 'reflect-metadata';
import { type INestApplication, RequestMethod, VersioningType } from '@nestjs/common';
import { RouterModule } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import dns from 'node:dns';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { ParleyModule, type ParleyModuleExtras, type ParleyModuleOptions } from '@parley/server';
import { pipelined } from '../../support/pipelined-requests.js';
import { POSTS_SEED, POSTS_POLICY, SECRET } from '../../fixtures/posts.fixture.js';
import { callTool, rpc, startDatabase } from '../../support/service.js';

const posts = await startDatabase(POSTS_SEED);
const database = { uri: posts.uri };

const ISSUER = 'http://127.0.0.1:1/issuer';
const RESOURCE = 'http://127.0.0.1/api/v1/agents/mcp';
const LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
const WELL_KNOWN = '/.well-known/oauth-protected-resource';
const as = (key: string) => ({ 'X-MCP-API-Key': `key-of-${key}` });

const adapters = [
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
] as const;

type Instance = ParleyModuleOptions & Pick<ParleyModuleExtras, 'name' | 'version'>;

interface Setting {
  readonly adapter?: () => unknown;
  readonly configure?: (app: INestApplication) => void;
  readonly below?: string;
}

const open: INestApplication[] = [];

/** An application that is given its address before it listens. */
async function applicationOf(
  instances: readonly Instance[],
  { adapter = adapters[0][1], configure = () => undefined, below }: Setting = {},
): Promise<INestApplication> {
  const compiled = await Test.createTestingModule({
    imports: [
      ...instances.map((instance) => ParleyModule.forRoot(instance)),
      ...(below === undefined ? [] : [RouterModule.register([{ path: below, module: ParleyModule }])]),
    ],
  }).compile();
  const app = compiled.createNestApplication(adapter() as never, { logger: false });
  open.push(app);
  configure(app);
  return app;
}

async function listening(...given: Parameters<typeof applicationOf>): Promise<string> {
  const app = await applicationOf(...given);
  await app.listen(0, '127.0.0.1');
  return app.getUrl();
}

const closeAll = () => Promise.all(open.splice(0).map((app) => app.close()));

const NEWS: Instance = {
  database,
  policy: { ...POSTS_POLICY, requireApprovalFor: ['write'] },
  server: { drainTimeout: 1 },
  agents: {
    desk: { permissions: 'readonly', tenantId: 'acme' },
    chief: { permissions: 'readonly', tenantId: 'acme' },
  },
  approvals: { mode: 'desk', approvers: ['chief'] },
  auth: [
    { apiKey: 'key-of-desk', agent: 'desk' },
    { apiKey: 'key-of-chief', agent: 'chief' },
    { agent: 'desk', oauth: { issuer: ISSUER, audience: RESOURCE } },
  ],
};
const BILLING: Instance = {
  ...NEWS,
  name: 'billing',
  server: { path: '/billing', drainTimeout: 1 },
  auth: [{ apiKey: 'key-of-biller', agent: 'desk' }],
  endpoints: { health: true },
};

describe.each(adapters)('beside MCP, an application on %s', (_, adapter) => {
  let origin: string;
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(`${origin}${path}`, { headers, method });
  const statuses = async (paths: readonly string[], headers: Record<string, string> = {}) =>
    Promise.all(paths.map(async (path) => [path, (await get(path, headers)).status]));

  beforeAll(async () => {
    origin = await listening([NEWS, BILLING], {
      adapter,
      below: 'agents',
      configure: (app) => {
        app.setGlobalPrefix('api');
        app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
      },
    });
  });
  afterAll(closeAll);

  it('lists the tools of the caller below the path of each instance, to nobody else, and nowhere else', async () => {
    const listed = await get('/api/v1/agents/mcp/tools', as('desk'));
    const tools = (await listed.json()) as { name: string }[];
    expect(tools.map(({ name }) => name)).toContain('query_class');
    expect((await get('/api/v1/agents/billing/tools', as('biller'))).status).toBe(200);
    expect((await get('/api/v1/agents/billing/tools', as('desk'))).status).toBe(401);
    expect((await get('/api/v1/agents/mcp/tools', as('desk'), 'POST')).status).toBe(405);
    expect(await statuses(['/tools', '/api/v1/tools', '/api/v1/agents/tools'], as('desk'))).toEqual([
      ['/tools', 404],
      ['/api/v1/tools', 404],
      ['/api/v1/agents/tools', 404],
    ]);
  });

  it('works on the requests of one connection one after another, however many are sent', async () => {
    const statuses = await pipelined(origin, '/api/v1/agents/mcp/tools', as('desk'), 150);
    expect(new Set(statuses)).toEqual(new Set(['200', '503']));
    expect(statuses.filter((status) => status === '200').length).toBeGreaterThan(100);
  });

  it('shows approvals to approvers alone', async () => {
    const at = '/api/v1/agents/mcp/approvals';
    expect(await (await get(at, as('chief'))).json()).toEqual({ approvals: [] });
    expect((await get(at, as('desk'))).status).toBe(403);
    expect((await get(at)).status).toBe(401);
    expect((await get(`${at}/none`, as('chief'))).status).toBe(404);
    const decided = await fetch(`${origin}${at}/none`, {
      method: 'POST',
      headers: { ...as('chief'), 'Content-Type': 'application/json' },
      body: '{"decision":"approve","digest":"of nothing"}',
    });
    expect(decided.status).toBe(404);
  });

  it.each([
    ['mcp', 'desk'],
    ['billing', 'biller'],
  ])('serves the files of exports of %s at the link that its tool returns', async (instance, key) => {
    const at = { url: `${origin}/api/v1/agents/${instance}` };
    const order = { class_name: 'Post', delivery: 'resource', columns: ['title'] };
    const { text } = await callTool(at, 'export_data', order, as(key));
    const { path } = JSON.parse(text) as { path: string };
    expect(path).toMatch(new RegExp(`^/api/v1/agents/${instance}/exports/[\\w-]+$`));
    const file = await (await get(path, as(key))).text();
    expect(file.split('\r\n')).toContain('Post 7');
    expect(file).not.toContain(SECRET);
    expect((await get(path)).status).toBe(401);
    const others = key === 'desk' ? as('chief') : as('desk');
    expect([401, 404]).toContain((await get(path, others)).status);
    expect((await get(path.replace('/api/v1/agents', ''), as(key))).status).toBe(404);
    expect((await get(path, as(key), 'DELETE')).status).toBe(204);
    expect((await get(path, as(key))).status).toBe(404);
  });

  it('serves health at the configured path, and nowhere else', async () => {
    expect(await (await get('/api/v1/agents/billing/health')).json()).toMatchObject({ status: 'ok' });
    expect(await (await get('/api/v1/agents/billing/ready')).json()).toMatchObject({ status: 'ready' });
    expect(
      await statuses(['/api/v1/agents/mcp/health', '/api/v1/agents/mcp/ready', '/health', '/ready']),
    ).toEqual([
      ['/api/v1/agents/mcp/health', 404],
      ['/api/v1/agents/mcp/ready', 404],
      ['/health', 404],
      ['/ready', 404],
    ]);
  });

  it('points callers without a token to metadata at the root of the host, whatever its own prefix', async () => {
    for (const path of ['/api/v1/agents/mcp', '/api/v1/agents/mcp/tools']) {
      const refused = await fetch(`${origin}${path}`, {
        method: path.endsWith('mcp') ? 'POST' : 'GET',
        headers: { 'Content-Type': 'application/json' },
        ...(path.endsWith('mcp') && { body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' }),
      });
      expect(refused.status).toBe(401);
      const [, url = ''] =
        /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate') ?? '') ?? [];
      expect(new URL(url).pathname).toBe(`${WELL_KNOWN}/api/v1/agents/mcp`);
      const document = await get(new URL(url).pathname, { Origin: 'https://inspector.example' });
      expect(document.headers.get('access-control-allow-origin')).toBe('*');
      expect(await document.json()).toMatchObject({ resource: RESOURCE, authorization_servers: [ISSUER] });
    }
    expect((await get(`${WELL_KNOWN}/api/v1/agents/mcp`, {}, 'OPTIONS')).status).toBe(204);
  });

  it('leaves the application every document that is not of an instance that takes tokens', async () => {
    const paths = [
      WELL_KNOWN,
      `${WELL_KNOWN}/api/v1/agents/billing`,
      `${WELL_KNOWN}/api/v1/agents/mcp/more`,
      `/api${WELL_KNOWN}`,
      '/.well-known/oauth-authorization-server',
    ];
    expect(await statuses(paths)).toEqual(paths.map((path) => [path, 404]));
  });
});

describe('where an instance is served', () => {
  afterEach(closeAll);
  const plain: Instance = { ...NEWS, auth: [{ apiKey: 'key-of-desk', agent: 'desk' }] };
  const listsTools = async (url: string) => (await rpc({ url }, 'tools/list', {}, as('desk'))).status;

  it('is what is left when every endpoint is switched off: MCP alone', async () => {
    const off = { tools: false, approvals: false, exports: false, documents: false, health: false };
    const origin = await listening([{ ...NEWS, endpoints: off }]);
    const url = `${origin}/mcp`;
    expect(await listsTools(url)).toBe(200);
    for (const path of ['/mcp/tools', '/mcp/approvals', '/mcp/exports/x', '/mcp/health', `${WELL_KNOWN}/mcp`])
      expect([path, (await fetch(`${origin}${path}`, { headers: as('desk') })).status]).toEqual([path, 404]);
    const order = { class_name: 'Post', delivery: 'resource' };
    const { text } = await callTool({ url }, 'export_data', order, as('desk'));
    expect(JSON.parse(text)).toMatchObject({ uri: expect.stringMatching(/^export:/) as string });
    expect(text).not.toMatch(/"path"|GET /);
  });

  it('is one place for each version, which all answer, and links name the first', async () => {
    const origin = await listening([plain], {
      configure: (app) => app.enableVersioning({ type: VersioningType.URI, defaultVersion: ['1', '2'] }),
    });
    expect(await listsTools(`${origin}/v1/mcp`)).toBe(200);
    expect(await listsTools(`${origin}/v2/mcp`)).toBe(200);
    const order = { class_name: 'Post', delivery: 'resource' };
    const { text } = await callTool({ url: `${origin}/v2/mcp` }, 'export_data', order, as('desk'));
    expect((JSON.parse(text) as { path: string }).path).toMatch(/^\/v1\/mcp\/exports\//);
  });

  it.each(adapters)('goes without a global prefix that excludes it, on %s', async (_, adapter) => {
    const origin = await listening([plain], {
      adapter,
      configure: (app) =>
        app.setGlobalPrefix('api', {
          exclude: ['mcp', { path: 'other', method: RequestMethod.GET }],
        }),
    });
    expect(await listsTools(`${origin}/mcp`)).toBe(200);
    expect((await fetch(`${origin}/mcp/tools`, { headers: as('desk') })).status).toBe(200);
    expect(await listsTools(`${origin}/api/mcp`)).toBe(404);
  });

  it('goes without the prefix when a pattern excludes all of it, versions staying', async () => {
    const origin = await listening([plain], {
      below: 'agents',
      configure: (app) => {
        app.setGlobalPrefix('api', { exclude: ['agents/*rest'] });
        app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
      },
    });
    expect(await listsTools(`${origin}/v1/agents/mcp`)).toBe(200);
  });

  it('is refused at the start when a prefix excludes it for some verbs only', async () => {
    const app = await applicationOf([plain], {
      configure: (one) =>
        one.setGlobalPrefix('api', { exclude: [{ path: 'mcp', method: RequestMethod.POST }] }),
    });
    await expect(app.init()).rejects.toThrow(/global prefix excludes \/mcp .* some verbs/);
  });

  it.each([
    ['at the tools of another', { name: 'two', server: { path: '/mcp/tools' } }, '/mcp/tools'],
    ['at the exports of another', { name: 'two', server: { path: '/mcp/exports' } }, '/mcp/exports'],
  ])('is refused at the start %s', async (_title, other, path) => {
    const app = await applicationOf([plain, other]);
    await expect(app.init()).rejects.toThrow(`path ${path}`);
  });

  it('may lie below another instance, which answers the rest', async () => {
    const origin = await listening([plain, { ...plain, name: 'two', server: { path: '/mcp/two' } }]);
    expect(await listsTools(`${origin}/mcp/two`)).toBe(200);
    expect(await listsTools(`${origin}/mcp`)).toBe(200);
    expect(await listsTools(`${origin}/mcp/three`)).toBe(404);
  });

  it.each([
    ['endpoints.tool', { endpoints: { tool: true } }],
    ['endpoints.health', { endpoints: { health: 'yes' } }],
    ['endpoints', { endpoints: null }],
    ['server.path', { server: { path: '/exports' } }],
  ])('is not guessed from an error at %s', async (path, options) => {
    const starting = applicationOf([options as unknown as Instance]);
    await expect(starting).rejects.toMatchObject({ issues: [{ path }] });
  });

  it.each(adapters)('is every address of the name that %s listens on', async (_, adapter) => {
    // As on machines where the name has an address of each family; here it has two of one.
    type Told = (error: null, found: unknown, family?: number) => void;
    const resolve = vi.spyOn(dns, 'lookup').mockImplementation(((
      name: string,
      options: { readonly all?: boolean } | Told,
      done?: Told,
    ) => {
      const found = name === 'localhost' ? ['127.0.0.1', '127.0.0.2'] : [name];
      if (typeof options === 'function') options(null, found[0], 4);
      else if (options.all)
        done?.(
          null,
          found.map((address) => ({ address, family: 4 })),
        );
      else done?.(null, found[0], 4);
    }) as never);
    const app = await applicationOf([plain], { adapter });
    await app.listen(0, 'localhost');
    const { port } = (app.getHttpServer() as { address(): AddressInfo }).address();
    const ask = async (host: string) => {
      const headers = { ...as('desk'), 'Content-Type': 'application/json', Host: 'localhost' };
      const asked = request({ host, port, path: '/mcp', method: 'POST', headers });
      const [answer] = (await once(asked.end(LIST), 'response')) as [IncomingMessage];
      return json(answer);
    };
    expect(await ask('127.0.0.1')).toHaveProperty('result.tools');
    // Express has one server for a name, Fastify one for each address.
    if (app.getHttpAdapter().getType() === 'fastify')
      await vi.waitFor(async () => expect(await ask('127.0.0.2')).toHaveProperty('result.tools'), 10_000);
    else await expect(ask('127.0.0.2')).rejects.toThrow('ECONNREFUSED');
    expect(resolve).toHaveBeenCalled();
    resolve.mockRestore();
  });
});
