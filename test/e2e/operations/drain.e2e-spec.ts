import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { askModern } from '../../support/modern-call.js';
import {
  type Answer,
  callTool,
  type Database,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const WAIT = { timeout: 60_000, interval: 50 };
const POSTS = 'parse://Post/count';
const config = {
  agents: { editor: { permissions: 'admin', rateLimit: 1_000_000 } },
  auth: [{ apiKey: 'editor', agent: 'editor' }],
  plugins: [fileURLToPath(new URL('../../fixtures/plugins/slow.mjs', import.meta.url))],
  subscriptions: { debounce: 0.05 },
  tasks: { heartbeat: 0.5 },
  policy: { unlistedClasses: 'allow' },
};
const headers = { 'X-MCP-API-Key': 'editor' };
const env = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' };

const folder = makeFolder('drain');
let redis: RedisServer;
let database: Database;
const replicas: Service[] = [];
async function startReplica(drainTimeout: number): Promise<Service> {
  const replica = await startService({
    config: { ...config, server: { drainTimeout } },
    env: { ...env, REDIS_URL: redis.url, MONGODB_URI: database.uri },
  });
  replicas.push(replica);
  return replica;
}

beforeAll(async () => {
  redis = await startRedis();
  database = await startDatabase({
    schemas: [{ className: 'Post', fields: { title: { type: 'String' } } }],
    objects: { Post: [{ objectId: 'first', title: 'first' }] },
  });
});
afterAll(async () => {
  await Promise.all(replicas.filter((replica) => replica.isRunning()).map((replica) => replica.kill()));
  await database?.stop();
  await redis?.stop();
});

let id = 0;
/** What a slow call waits for. */
const awaited = () => {
  const until = join(folder, `${++id}`);
  const begun = () => vi.waitFor(() => expect(existsSync(`${until}.begun`)).toBe(true), WAIT);
  return { until, begun, give: () => writeFileSync(until, '') };
};

const modern = (service: Service, method: string, params: Record<string, unknown>) =>
  askModern(service, method, params, headers);
const resultOf = ({ body }: Answer) => (body as { result: Record<string, unknown> }).result;
const begin = async (service: Service, name: string, until: string) =>
  String(resultOf(await modern(service, 'tools/call', { name, arguments: { until } }))['taskId']);
const taskAt = async (service: Service, taskId: string) =>
  resultOf(await modern(service, 'tasks/get', { taskId }));

/** A session and its listening stream, with everything that came on it so far. */
async function listening(service: Service, session: Record<string, string>) {
  const stream = await fetch(service.url, {
    headers: { ...headers, ...session, Accept: 'text/event-stream' },
  });
  expect(stream.status).toBe(200);
  let text = '';
  /** How it ended: by its last byte, or torn. */
  const over = (async () => {
    for await (const chunk of stream.body as unknown as AsyncIterable<Uint8Array>)
      text += Buffer.from(chunk).toString();
  })().then(
    () => 'ended',
    () => 'torn',
  );
  return { over, text: () => text };
}

const closing = (service: Service) =>
  vi.waitFor(async () => {
    const ready = await fetch(`${service.origin}/ready`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({ status: 'draining' });
  }, WAIT);

describe('a replica that is asked to end', () => {
  it('takes nothing new, finishes what runs, and leaves its streams to the others', async () => {
    const [going, staying] = await Promise.all([startReplica(60), startReplica(60)]);
    const initialize = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'raw', version: '1' },
    };
    const opened = await rpc(going, 'initialize', initialize, headers);
    const session = { 'Mcp-Session-Id': opened.headers.get('mcp-session-id') ?? '' };
    const before = await listening(going, session);
    await rpc(going, 'resources/subscribe', { uri: POSTS }, { ...headers, ...session });
    const [plain, task] = [awaited(), awaited()];
    const call = callTool(going, 'slow_read', { until: plain.until }, headers);
    const ids = await Promise.all(
      [going, going, staying].map((service) => begin(service, 'slow_write', task.until)),
    );
    await Promise.all([plain.begun(), task.begun()]);

    going.signal('SIGTERM');
    await closing(going);
    expect(await before.over).toBe('ended');
    expect((await rpc(going, 'tools/list', {}, headers)).status).toBe(503);
    const after = await listening(staying, session);
    await vi.waitFor(async () => {
      await callTool(staying, 'create_object', { class_name: 'Post', fields: { title: 'x' } }, headers);
      expect(after.text()).toContain(POSTS);
    }, WAIT);
    expect(going.isRunning()).toBe(true);

    plain.give();
    expect((await call).data).toMatchObject({ posts: expect.any(Number) as number });
    task.give();
    expect(await going.ended).toBe(0);
    for (const taskId of ids)
      await vi.waitFor(async () => expect(statusOf(await taskAt(staying, taskId))).toBe('completed'), WAIT);
    expect(going.output().stderr).not.toContain('ERROR');
  });

  it('hands over what still reads when its time is up, and says of a write that it was broken off', async () => {
    const staying = replicas.find((replica) => replica.isRunning()) as Service;
    const going = await startReplica(0.1);
    const [{ until, give }, plain] = [awaited(), awaited()];
    const ids = await Promise.all(
      [1, 2, 3].flatMap(() => [begin(going, 'slow_read', until), begin(going, 'slow_write', until)]),
    );
    const call = callTool(going, 'slow_read', { until: plain.until }, headers);
    await plain.begun();
    going.signal('SIGTERM');
    expect(await going.ended).toBe(0);
    expect((await call).text).toContain('server_shutdown');
    give();
    const states = await Promise.all(
      ids.map((taskId) =>
        vi.waitFor(async () => {
          const state = await taskAt(staying, taskId);
          expect(['completed', 'failed']).toContain(statusOf(state));
          return state;
        }, WAIT),
      ),
    );
    for (const [index, state] of states.entries()) {
      if (index % 2 === 0) expect(statusOf(state)).toBe('completed');
      else if (statusOf(state) === 'failed') expect(JSON.stringify(state)).toContain('interrupted');
    }
  });

  it('ends at once when it is asked a second time', async () => {
    const going = await startReplica(3600);
    const { until, begun } = awaited();
    const call = callTool(going, 'slow_read', { until }, headers).catch(() => 'broken off');
    await begun();
    going.signal('SIGTERM');
    await closing(going);
    going.signal('SIGTERM');
    expect(await going.ended).toBe(1);
    expect(await call).toBe('broken off');
  });
});

function statusOf(state: Record<string, unknown>): unknown {
  return state['status'];
}
