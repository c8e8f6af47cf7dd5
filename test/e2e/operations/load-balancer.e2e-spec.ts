import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { type Nginx, startNginx } from '../../support/nginx-process.js';
import { POSTS_SEED, POSTS_CONFIG } from '../../fixtures/posts.fixture.js';
import {
  callTool,
  type Database,
  openSession,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';

const KEY = { 'X-MCP-API-Key': 'analyst' };
const PATIENT = { timeout: 30_000, interval: 50 };
const CONFIG = {
  ...POSTS_CONFIG,
  plugins: [fileURLToPath(new URL('../../fixtures/plugins/telling.mjs', import.meta.url))],
  agents: { analyst: { tenantId: 'acme', rateLimit: 1_000_000 }, local: { tenantId: 'acme' } },
  auth: [
    { apiKey: 'analyst', agent: 'analyst' },
    { anonymous: true, agent: 'local' },
  ],
  server: { maxBodySize: 1_048_576 },
};

describe('two replicas behind nginx, with the configuration that is shipped', () => {
  let database: Database;
  let redis: RedisServer;
  let replicas: Service[];
  let nginx: Nginx;

  beforeAll(async () => {
    [database, redis] = await Promise.all([startDatabase(POSTS_SEED), startRedis()]);
    const env = { MONGODB_URI: database.uri, REDIS_URL: redis.url };
    replicas = await Promise.all([
      startService({ config: CONFIG, env }),
      startService({ config: CONFIG, env }),
    ]);
    nginx = await startNginx(replicas);
  });
  afterAll(async () => {
    await nginx.stop();
    await Promise.all(replicas.map((replica) => replica.stop()));
    await Promise.all([database.stop(), redis.stop()]);
  });

  const open = async (protocolVersion = '2025-06-18') => ({
    ...(await openSession(nginx, KEY, protocolVersion)),
    'MCP-Protocol-Version': protocolVersion,
  });
  const count = (headers: Record<string, string>) =>
    callTool(nginx, 'count_objects', { class_name: 'Post' }, headers);
  const served = () =>
    replicas.map((replica) => replica.output().stderr.split('tool=count_objects').length - 1);

  it('serve one session, whichever of them a request reaches', async () => {
    const session = await open();
    for (let at = 0; at < 20; at += 1) expect((await count(session)).isError).toBe(false);
    await expect.poll(() => Math.min(...served()), PATIENT).toBeGreaterThan(0);
  });

  it('send events when they happen, and notice when the client goes away', async () => {
    const session = await open('2025-06-18');
    const leave = new AbortController();
    const params = { name: 'until_cancelled', arguments: {}, _meta: { progressToken: 'p' } };
    const response = await fetch(nginx.url, {
      method: 'POST',
      headers: {
        ...session,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 'leaving', method: 'tools/call', params }),
      signal: leave.signal,
    });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    // The call never ends by itself: were events gathered on the way, none would ever come.
    let heard = '';
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      heard += Buffer.from(chunk).toString();
      if (heard.includes('"progressToken":"p"')) break;
    }
    leave.abort();
    const logs = () => replicas.map((replica) => replica.output().stderr).join('');
    await expect.poll(logs, PATIENT).toMatch(/call tool=until_cancelled .*code=cancelled/);
  });

  it('keep a silent listening stream open, and end it for a session that is ended at the other one', async () => {
    const session = await open();
    const response = await fetch(nginx.url, { headers: { ...session, Accept: 'text/event-stream' } });
    expect(response.status).toBe(200);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    // A sign of life, which says nothing.
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toMatch(/^(:|event|id|retry|data)/);
    for (let at = 0; at < 2; at += 1) {
      const { status } = await fetch(nginx.url, { method: 'DELETE', headers: session });
      expect([204, 404]).toContain(status);
    }
    while (!(await reader.read()).done);
  });

  it('let nobody in without a key: behind a proxy no caller is one of this machine', async () => {
    expect((await rpc(replicas[0] as Service, 'tools/list')).status).toBe(200);
    const forgeries: Record<string, string>[] = [
      {},
      { 'X-Forwarded-For': '127.0.0.1' },
      { Forwarded: 'for=127.0.0.1' },
      { 'X-Real-IP': '::1' },
    ];
    for (const forged of forgeries) expect((await rpc(nginx, 'tools/list', {}, forged)).status).toBe(401);
  });

  it('get bodies whole and with their length, and none that is too large', async () => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
    const chunked = {
      method: 'POST',
      headers: { ...KEY, 'Content-Type': 'application/json' },
      duplex: 'half',
    };
    const send = (url: string) =>
      fetch(url, { ...chunked, body: new Blob([body]).stream() } as RequestInit).then(({ status }) => status);
    expect(await send((replicas[0] as Service).url)).toBe(411);
    expect(await send(nginx.url)).toBe(200);
    const large = await fetch(nginx.url, { method: 'POST', headers: KEY, body: 'x'.repeat(1_100_000) });
    expect(large.status).toBe(413);
  });

  it('show callers without credentials whether they are up, and not what they run on', async () => {
    expect((await fetch(`${nginx.origin}/health`)).status).toBe(200);
    expect((await fetch(`${nginx.origin}/ready`)).status).toBe(404);
    const { headers } = await fetch(`${nginx.origin}/health`);
    expect(headers.get('server')).toBe('nginx');
  });

  it('give each request an id that no client chooses: records lead to the line of nginx with the address', async () => {
    const { headers } = await fetch(`${nginx.origin}/health`, { headers: { 'X-Request-Id': 'chosen' } });
    expect(headers.get('x-request-id')).toMatch(/^[\da-f]{32}$/);
  });

  it('go on with one of them when the other dies', async () => {
    const session = await open();
    await (replicas[0] as Service).kill();
    for (let at = 0; at < 10; at += 1) expect((await count(session)).isError).toBe(false);
  });
});
