import { Redis } from 'ioredis';
import { connect, type Socket } from 'node:net';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_SEED, POSTS_POLICY } from '../../fixtures/posts.fixture.js';
import { askModern } from '../../support/modern-call.js';
import {
  callTool,
  type Database,
  openSession,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const PATIENT = { timeout: 60_000, interval: 100 };
const ADA = { 'X-MCP-API-Key': 'key-of-ada' };
const MAX_CONNECTIONS = 20;
const MAX_TASKS = 3;
const config = {
  server: { maxConnections: MAX_CONNECTIONS, preAuthRateLimit: { limit: 100_000, window: 60 } },
  agents: {
    ada: { permissions: 'write', tenantId: 'acme', rateLimit: 1_000_000, budget: { rows: 1_000_000 } },
    chief: { permissions: 'admin', tenantId: 'acme' },
  },
  auth: ['ada', 'chief'].map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
  approvals: { mode: 'desk', approvers: ['chief'], expiry: 60 },
  policy: {
    ...POSTS_POLICY,
    requireApprovalFor: ['write'],
    tenantBudget: { calls: 1_000_000 },
  },
  plugins: [fileURLToPath(new URL('../../fixtures/plugins/slow.mjs', import.meta.url))],
  tasks: { lifetime: 600, maxPerPrincipal: MAX_TASKS },
};

/** Kept for good, and documented so (docs/reference/limits.md): a key of sealing, and what BullMQ knows of its one queue. */
const KEPT = [/^parley:\{(?:secret|installation):/, /^\{parley\}:tasks:(meta|id|events|marker|limiter)$/];

const folder = makeFolder('growth');
let redis: RedisServer;
let database: Database;
let service: Service;
let client: Redis;
beforeAll(async () => {
  [redis, database] = await Promise.all([startRedis(), startDatabase(POSTS_SEED)]);
  service = await startService({
    config,
    env: { REDIS_URL: redis.url, MONGODB_URI: database.uri, PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true' },
  });
  client = new Redis(redis.url);
});
afterAll(async () => {
  client.disconnect();
  await service.stop();
  await Promise.all([database.stop(), redis.stop()]);
});

const modern = (method: string, params: Record<string, unknown>, extensions: object = {}) =>
  askModern(service, method, params, ADA, { extensions, elicitation: {} });
const TASKS = { 'io.modelcontextprotocol/tasks': {} };
const begin = async (until: string) => {
  const { body } = await modern('tools/call', { name: 'slow_read', arguments: { until } }, TASKS);
  return body['result'] as { taskId?: string; isError?: boolean; content?: { text: string }[] };
};

const open = async (protocolVersion: string) => ({
  ...(await openSession(service, ADA, protocolVersion)),
  'MCP-Protocol-Version': protocolVersion,
});

describe('what a service keeps', () => {
  it('in Redis ends by itself, whatever it was used for', async () => {
    // Sessions, one of which is ended; a stream that can be resumed; a subscription.
    const ended = await open('2025-06-18');
    await fetch(service.url, { method: 'DELETE', headers: ended });
    const session = await open('2025-11-25');
    const streamed = await fetch(service.url, {
      method: 'POST',
      headers: {
        ...session,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 'streamed',
        method: 'tools/call',
        params: { name: 'query_class', arguments: { class_name: 'Post' } },
      }),
    });
    expect(await streamed.text()).toContain('"isError":false');
    const subscribed = await rpc(service, 'resources/subscribe', { uri: 'parse://Post/count' }, session);
    expect(subscribed.body.error).toBeUndefined();
    // An export, a pending approval, and a task: one that ends and one that is cancelled.
    const order = { class_name: 'Post', delivery: 'resource', format: 'csv' };
    expect((await callTool(service, 'export_data', order, session)).isError).toBe(false);
    const asked = modern('tools/call', { name: 'slow_write', arguments: { until: join(folder, 'never') } });
    await expect.poll(() => client.keys('parley:{approvals:*'), PATIENT).not.toEqual([]);
    const until = join(folder, 'soon');
    const [first, second] = [await begin(until), await begin(join(folder, 'never'))];
    writeFileSync(until, '');
    await modern('tasks/cancel', { taskId: second.taskId }, TASKS);
    const statusOf = async (taskId: string | undefined) =>
      ((await modern('tasks/get', { taskId }, TASKS)).body['result'] as { status?: string }).status;
    await expect.poll(() => statusOf(first.taskId), PATIENT).toBe('completed');
    await expect.poll(() => statusOf(second.taskId), PATIENT).toBe('cancelled');

    const keys = await client.keys('*');
    for (const kind of [
      'session',
      'rate',
      'budget',
      'stream',
      'approvals',
      'subscriptions',
      'export',
      'task',
    ])
      expect(keys.filter((key) => key.startsWith(`parley:{${kind}:`))).not.toEqual([]);
    const lasting: string[] = [];
    for (const key of keys) if ((await client.ttl(key)) === -1) lasting.push(key);
    expect(lasting.filter((key) => !KEPT.some((kept) => kept.test(key)))).toEqual([]);
    expect(await client.xlen('{parley}:tasks:events')).toBeLessThan(300);
    void asked.catch(() => undefined);
  });

  it('of tasks is bounded for each principal', async () => {
    const begun = await begin(join(folder, 'never-either'));
    expect(begun.taskId).toBeDefined();
    const refused = await begin(join(folder, 'one-too-many'));
    expect(refused.isError).toBe(true);
    expect(refused.content?.[0]?.text).toContain(`${MAX_TASKS} requests per 600s`);
    await modern('tasks/cancel', { taskId: begun.taskId }, TASKS);
  });

  it('of connections is bounded, and those that are open are still served', async () => {
    const { hostname, port } = new URL(service.url);
    const sockets: Socket[] = [];
    let closed = 0;
    for (let at = 0; at < MAX_CONNECTIONS + 10; at += 1) {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => undefined).on('close', () => (closed += 1));
      sockets.push(socket);
    }
    await expect.poll(() => closed, PATIENT).toBeGreaterThanOrEqual(10);
    const alive = sockets.find((socket) => !socket.destroyed) as Socket;
    const answer = new Promise<string>((resolve) =>
      alive.once('data', (chunk: Buffer) => resolve(chunk.toString())),
    );
    alive.write(`GET /health HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
    expect(await answer).toContain('200 OK');
    for (const socket of sockets) socket.destroy();
    await expect
      .poll(
        () =>
          fetch(`${service.origin}/health`).then(
            ({ ok }) => ok,
            () => false,
          ),
        PATIENT,
      )
      .toBe(true);
  });
});
