import { spawn } from 'node:child_process';
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  callTool,
  rpc,
  type Service,
  startAndFail,
  startDatabase,
  startService,
} from '../../support/service.js';
import { endWithFile, makeFolder } from '../../support/started.js';
import { POSTS_SEED, POSTS_CONFIG } from '../../fixtures/posts.fixture.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));

describe('the service', () => {
  it('says on stderr where it listens, answers health without credentials, and ends cleanly', async () => {
    const service = await startService({ seed: POSTS_SEED, config: POSTS_CONFIG });
    expect(service.output().stderr).toMatch(/^Parley listening on http:\/\/127\.0\.0\.1:\d+\/mcp$/m);
    const health = await fetch(`${service.origin}/health`);
    expect([health.status, await health.json()]).toEqual([200, { status: 'ok', mcp_enabled: true }]);
    const ready = await fetch(`${service.origin}/ready`);
    expect([ready.status, await ready.json()]).toEqual([
      200,
      { status: 'ready', dependencies: { mongodb: 'up' } },
    ]);
    // Without operators there is no console, whatever one asks of it.
    for (const path of ['console', 'console/session', 'console/api/status', 'console/assets/x/main.js'])
      expect((await fetch(`${service.origin}/${path}`)).status).toBe(404);
    expect(service.output().stdout).toBe('');
    expect(await service.stop()).toBe(0);
  });

  describe('with a key', () => {
    let service: Service;
    beforeAll(async () => {
      service = await startService({ seed: POSTS_SEED, config: POSTS_CONFIG, env: { MCP_API_KEY: 'k' } });
    });
    afterAll(() => service?.stop());

    it('lists the tools of the caller at /tools', async () => {
      const refused = await fetch(`${service.origin}/tools`);
      expect([refused.status, await refused.json()]).toEqual([
        401,
        { error: 'Unauthorized: invalid or missing API key' },
      ]);
      const key = { 'X-MCP-API-Key': 'k' };
      const listed = await fetch(`${service.origin}/tools`, { headers: key });
      const tools = (await listed.json()) as { name: string; inputSchema: object }[];
      const { body } = await rpc(service, 'tools/list', {}, key);
      const spoken = (body['result'] as { tools: { name: string }[] }).tools;
      expect(tools.map(({ name }) => name)).toEqual(spoken.map(({ name }) => name));
      expect(tools[0]).toMatchObject({ name: 'list_tools', inputSchema: { type: 'object' } });
    });

    it('leaves its port to nobody else, and that one names the way out', async () => {
      const { port } = new URL(service.origin);
      const { code, stderr } = await startAndFail({ config: POSTS_CONFIG, env: { PORT: port } });
      expect(code).toBe(1);
      expect(stderr).toContain(`server.port: cannot listen on 127.0.0.1:${port} (EADDRINUSE)`);
      expect(stderr).toMatch(/PORT names another/);
      expect(stderr).not.toMatch(/at .*\.js:\d+/);
    });

    it('names the option of a host that is no address of this machine', async () => {
      const config = { ...POSTS_CONFIG, server: { host: 'no-such-host.invalid' } };
      const { code, stderr } = await startAndFail({ config, env: { MCP_API_KEY: 'k' } });
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /server\.host: cannot listen on no-such-host\.invalid:\d+ \(E\w+\): give server\.host an address of this machine/,
      );
      expect(stderr).not.toMatch(/at .*\.js:\d+/);
    });

    it('drops headers with underscores, so that a dashed one cannot be forged', async () => {
      expect((await rpc(service, 'ping', {}, { X_MCP_API_KEY: 'k' })).status).toBe(401);
      const both = { 'X-MCP-API-Key': 'k', X_MCP_API_KEY: 'wrong' };
      expect((await rpc(service, 'ping', {}, both)).status).toBe(200);
    });
  });

  it('serves on while its database is down, with clear errors, and recovers by itself', async () => {
    const database = await startDatabase(POSTS_SEED);
    const port = Number(new URL(database.uri).port);
    const service = await startService({ config: POSTS_CONFIG, env: { MONGODB_URI: database.uri } });
    const count = () => callTool(service, 'count_objects', { class_name: 'Post' });
    expect((await count()).data).toMatchObject({ count: 60 });

    await database.stop();
    const answer = await count();
    expect(answer).toMatchObject({
      isError: true,
      code: 'parse_error',
      text: 'Parse error: the database does not answer',
    });
    expect(answer.wire).not.toMatch(/ECONNREFUSED|127\.0\.0\.1|Mongo/);
    const ready = await fetch(`${service.origin}/ready`);
    expect([ready.status, await ready.json()]).toEqual([
      503,
      { status: 'unavailable', dependencies: { mongodb: 'down' } },
    ]);
    expect((await fetch(`${service.origin}/health`)).status).toBe(200);
    expect((await callTool(service, 'list_tools')).isError).toBe(false);

    const again = await startDatabase(POSTS_SEED, port);
    await expect.poll(async () => (await count()).data['count'], { timeout: 20_000 }).toBe(60);
    await service.stop();
    await again.stop();
  });
});

describe('a start that must not happen', () => {
  it.each<[string, Parameters<typeof startAndFail>[0], RegExp[]]>([
    [
      'a typo in the configuration',
      { config: { serverr: {}, policy: { unlistedClasses: 'allow', classes: { Post: { feilds: [] } } } } },
      [/serverr: unknown key/, /policy\.classes\.Post\.feilds: unknown key/],
    ],
    [
      'a non-loopback address without authentication',
      { config: { server: { host: '0.0.0.0' } } },
      [/non-loopback/, /MCP_API_KEY/],
    ],
    ['a server that is switched off', { env: { PARSE_MCP_ENABLED: 'false' } }, [/PARSE_MCP_ENABLED/]],
    [
      'a seed with errors, all of them listed',
      {
        seed: {
          schemas: [{ className: 'a.b' }],
          rolls: [],
          sessions: [{ sessionToken: 'r:x', user: 'ghost' }],
        },
      },
      [/rolls/, /schemas/, /sessions/],
    ],
  ])('%s', async (_, options, texts) => {
    const { code, stderr } = await startAndFail(options);
    expect(code).toBe(1);
    for (const text of texts) expect(stderr).toMatch(text);
    expect(stderr).not.toMatch(/at .*\.js:\d+/);
  });
});

describe('the program and its database', () => {
  it('leave code caches to the next start, which takes none that was written under other flags of V8', async () => {
    const folder = makeFolder('code-cache');
    const filter = (path: string) => !/\.code-cache|\.map$/.test(path);
    for (const path of ['dist/bundle', 'demo/seed.json', 'parley.yaml', 'package.json'])
      cpSync(join(root, path), join(folder, path), { recursive: true, filter });
    const service = spawn(process.execPath, [join(folder, 'dist/bundle/main.js')], {
      cwd: folder,
      env: { PATH: process.env['PATH'], HOST: '127.0.0.1', PORT: '0' },
      stdio: 'ignore',
    });
    endWithFile(() => service.kill('SIGKILL'));
    const cache = join(folder, 'dist/bundle/.code-cache');
    await vi.waitFor(() => expect(readdirSync(cache)).toHaveLength(2), { timeout: 60_000, interval: 200 });
  });
});
