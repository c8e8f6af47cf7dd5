import { Redis } from 'ioredis';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_SEED, POSTS_POLICY } from '../../fixtures/posts.fixture.js';
import { askModern } from '../../support/modern-call.js';
import {
  type Answer,
  callTool,
  type Database,
  GATES_OPEN,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const WAIT = { timeout: 60_000, interval: 100 };
const SESSION = 'r:the-session-of-ann-never-in-plain-text';
const agents = {
  analyst: { permissions: 'readonly', tenantId: 'acme', rateLimit: 1_000_000 },
  editor: { permissions: 'write', tenantId: 'acme', rateLimit: 1_000_000 },
  twin: { permissions: 'readonly', tenantId: 'acme', rateLimit: 1_000_000 },
  caller: { permissions: 'readonly', identity: { session: 'caller' }, tenantId: 'acme' },
};
const auth = [
  { parseSession: true, agent: 'caller' },
  ...['analyst', 'editor', 'twin'].map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
];
const config = {
  agents,
  auth,
  policy: POSTS_POLICY,
  plugins: [fileURLToPath(new URL('../../fixtures/plugins/slow.mjs', import.meta.url))],
  tasks: { heartbeat: 0.5, lifetime: 600 },
  // A replica that closes shall not wait for calls that wait for this test.
  server: { drainTimeout: 0.2 },
};

const folder = makeFolder('tasks');
let redis: RedisServer;
let database: Database;
const replicas: Service[] = [];
const startReplica = async () => {
  const env = { ...GATES_OPEN, REDIS_URL: redis.url, MONGODB_URI: database.uri };
  const replica = await startService({ config, env });
  replicas.push(replica);
  return replica;
};

/** What a slow call waits for. */
const signal = () => {
  const until = join(folder, `${++id}`);
  return { until, give: () => writeFileSync(until, '') };
};

beforeAll(async () => {
  redis = await startRedis();
  const users = [
    ...(POSTS_SEED.users ?? []),
    { objectId: 'ann', username: 'ann', ACL: { '*': { read: true } } },
  ];
  database = await startDatabase({
    ...POSTS_SEED,
    users,
    sessions: [{ sessionToken: SESSION, user: 'ann', expiresAt: '2099-01-01T00:00:00.000Z' }],
  });
});
afterAll(async () => {
  await Promise.all(replicas.filter((replica) => replica.isRunning()).map((replica) => replica.stop()));
  await database?.stop();
  await redis?.stop();
});

interface Result {
  readonly resultType: string;
  readonly taskId: string;
  readonly status: string;
  readonly result?: { structuredContent?: Record<string, unknown>; isError?: boolean };
  readonly error?: { code: number; message: string };
  readonly structuredContent?: Record<string, unknown>;
  readonly [member: string]: unknown;
}

const key = (agent: string) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
let id = 0;
/** A request of the stateless era, of a client that follows tasks unless told otherwise. */
const modern = (
  service: Service,
  method: string,
  params: Record<string, unknown>,
  headers: Record<string, string> = key('analyst'),
  capabilities?: object,
) => askModern(service, method, params, headers, capabilities);
const resultOf = ({ body }: Answer) => body['result'] as Result;
const call = async (service: Service, name: string, until: string, headers?: Record<string, string>) =>
  resultOf(await modern(service, 'tools/call', { name, arguments: { until } }, headers));
const get = async (service: Service, taskId: string, headers?: Record<string, string>) =>
  resultOf(await modern(service, 'tasks/get', { taskId }, headers));
/** What is logged of refusals and errors, one per line. */
const recordsOf = (tool: string, service: Service) =>
  service
    .output()
    .stderr.split('\n')
    .filter((line) => line.includes(' WARN [Audit] ') && line.includes(`tool=${tool}`));
const ended = (service: Service, taskId: string, headers?: Record<string, string>) =>
  vi.waitFor(async () => {
    const state = await get(service, taskId, headers);
    expect(['completed', 'failed', 'cancelled']).toContain(state.status);
    return state;
  }, WAIT);

describe('a task', () => {
  let one: Service;
  let two: Service;
  beforeAll(async () => {
    [one, two] = [await startReplica(), await startReplica()];
  });

  it('is answered before the call has ended, and asked for at any replica', async () => {
    const { until, give } = signal();
    const created = await call(one, 'slow_read', until);
    expect(created).toMatchObject({ resultType: 'task', status: 'working', ttlMs: 600_000 });
    expect(created).not.toHaveProperty('result');
    expect((await get(two, created.taskId)).status).toBe('working');
    give();
    const state = await ended(two, created.taskId);
    expect(state).toMatchObject({ status: 'completed', resultType: 'complete' });
    expect(state.result?.structuredContent?.['posts']).toBe(60);
  });

  it('is none when the call is quick, or when its client does not follow tasks', async () => {
    const { until, give } = signal();
    give();
    // On a busy machine a first try may be slow.
    await vi.waitFor(async () => {
      const quick = await call(one, 'slow_read', until);
      expect(quick.structuredContent?.['posts']).toBe(60);
    }, WAIT);
    const params = { name: 'slow_read', arguments: { until } };
    const plain = resultOf(await modern(one, 'tools/call', params, key('analyst'), { extensions: {} }));
    expect(plain.structuredContent?.['posts']).toBe(60);
  });

  it('exists for its owner alone: to others it is like one that never was', async () => {
    const { until, give } = signal();
    const { taskId } = await call(one, 'slow_read', until);
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const params = { taskId, inputResponses: {} };
      const foreign = await modern(two, method, params, key('twin'));
      const unknown = await modern(two, method, { ...params, taskId: `${taskId}x` }, key('twin'));
      expect(foreign.body.error).toEqual({ code: -32602, message: 'Unknown task' });
      expect(unknown.body.error).toEqual(foreign.body.error);
    }
    give();
    expect((await ended(one, taskId)).status).toBe('completed');
  });

  it('ends when it is cancelled, wherever it runs, and stays so', async () => {
    const { taskId } = await call(one, 'slow_read', signal().until);
    expect(resultOf(await modern(two, 'tasks/cancel', { taskId }))).toMatchObject({ resultType: 'complete' });
    expect((await get(one, taskId)).status).toBe('cancelled');
    expect(resultOf(await modern(one, 'tasks/cancel', { taskId }))).toMatchObject({ resultType: 'complete' });
    await vi.waitFor(() => {
      const logs = [one, two].map((replica) => replica.output().stderr).join();
      expect(logs).toContain('tool=slow_read');
      expect(logs).toContain('code=cancelled');
    }, WAIT);
  });

  it('is refused to a client that does not declare the extension', async () => {
    const refused = await modern(one, 'tasks/get', { taskId: 'x' }, key('analyst'), { extensions: {} });
    expect([refused.status, refused.body.error?.code]).toEqual([400, -32021]);
  });

  it("runs under its caller's session, which lies in Redis under seal only", async () => {
    const headers = { 'X-Parse-Session-Token': SESSION };
    const { until, give } = signal();
    const { taskId } = await call(one, 'slow_read', until, headers);
    const client = new Redis(redis.url);
    const stored: string[] = [];
    for (const name of await client.keys('*')) {
      const type = await client.type(name);
      if (type === 'hash') stored.push(JSON.stringify(await client.hgetall(name)));
      if (type === 'string') stored.push(String(await client.get(name)));
    }
    client.disconnect();
    expect(stored.join()).toContain('slow_read');
    expect(stored.join()).not.toContain(SESSION);
    give();
    expect((await ended(two, taskId, headers)).status).toBe('completed');
  });
});

const countCalls = (tool: string) =>
  replicas.reduce((sum, replica) => sum + replica.output().stderr.split(`call tool=${tool} `).length - 1, 0);
const countPosts = async (title: string, service: Service) => {
  const args = { class_name: 'Post', where: { title } };
  return (await callTool(service, 'count_objects', args, key('editor'))).data['count'];
};

describe('when the worker of a task dies', { timeout: 120_000 }, () => {
  /** A replica alone, so that the run is its; then another one comes, and the first crashes. */
  const crashDuring = async (tool: string, headers: Record<string, string>) => {
    await Promise.all(replicas.splice(0).map((replica) => replica.stop()));
    const first = await startReplica();
    const { until, give } = signal();
    const { taskId } = await call(first, tool, until, headers);
    const second = await startReplica();
    await vi.waitFor(() => expect(existsSync(`${until}.begun`)).toBe(true), WAIT);
    await first.kill();
    give();
    return { state: await ended(second, taskId, headers), second, until };
  };

  it('a read is run by another and completes once', async () => {
    const { state } = await crashDuring('slow_read', key('analyst'));
    expect(state.status).toBe('completed');
    expect(state.result?.structuredContent?.['posts']).toBe(60);
  });

  it('a call that may have changed data is not run again: the task has failed', async () => {
    const { state, second } = await crashDuring('slow_write', key('editor'));
    expect(state).toMatchObject({ status: 'failed', error: { code: -32603 } });
    expect(state.error?.message).toContain('interrupted');
    // Sent to the client before it is on the log.
    await vi.waitFor(() => expect(recordsOf('slow_write', second)).not.toEqual([]), WAIT);
    expect(recordsOf('slow_write', second)).toEqual([
      expect.stringContaining('the worker of this task ended before its run did'),
    ]);
  });

  it('a read that called a tool that writes is not run again either, and the write happened once', async () => {
    const { state, second, until } = await crashDuring('slow_delegation', key('editor'));
    expect(await countPosts(until, second)).toBe(1);
    expect(state).toMatchObject({ status: 'failed' });
    expect(state.error?.message).toContain('interrupted');
  });

  it('a replica that closes hands its reads over, and one of the two records what came of it', async () => {
    await Promise.all(replicas.splice(0).map((replica) => replica.stop()));
    const first = await startReplica();
    const { until, give } = signal();
    const { taskId } = await call(first, 'slow_read', until);
    const second = await startReplica();
    expect(await first.stop()).toBe(0);
    give();
    expect((await ended(second, taskId)).status).toBe('completed');
    expect(recordsOf('slow_read', first)).toEqual([]);
    await expect.poll(() => second.output().stderr).toContain('tool=slow_read');
  });
});

describe('when the worker of a task hangs for longer than its lock lasts', { timeout: 120_000 }, () => {
  const LOCK = 1_000;
  const beginOn = async (service: Service, tool: string) => {
    const { until, give } = signal();
    const { taskId } = await call(service, tool, until, key('editor'));
    await vi.waitFor(() => expect(existsSync(`${until}.begun`)).toBe(true), WAIT);
    return { until, give, taskId };
  };
  beforeEach(async () => {
    await Promise.all(replicas.splice(0).map((replica) => replica.stop()));
  });

  it.each(['slow_then_delegation', 'slow_write'])(
    '%s runs once and to its end where no other worker is there',
    async (tool) => {
      const alone = await startReplica();
      const { until, give, taskId } = await beginOn(alone, tool);
      alone.signal('SIGSTOP');
      await pause(3 * LOCK);
      alone.signal('SIGCONT');
      // It finds the lost lock, and is assigned the job again.
      await pause(3 * LOCK);
      expect((await get(alone, taskId, key('editor'))).status).toBe('working');
      give();
      expect((await ended(alone, taskId, key('editor'))).status).toBe('completed');
      await expect.poll(() => countCalls(tool)).toBe(1);
      expect(await countPosts(until, alone)).toBe(tool === 'slow_write' ? 0 : 1);
    },
  );

  it('one of two attempts writes, and makes the one record, where another worker began what only read', async () => {
    const tool = 'slow_then_delegation';
    const first = await startReplica();
    const { until, give, taskId } = await beginOn(first, tool);
    const second = await startReplica();
    first.signal('SIGSTOP');
    rmSync(`${until}.begun`);
    await vi.waitFor(() => expect(existsSync(`${until}.begun`)).toBe(true), WAIT);
    first.signal('SIGCONT');
    give();
    expect((await ended(second, taskId, key('editor'))).status).toBe('completed');
    await pause(3 * LOCK);
    expect(await countPosts(until, second)).toBe(1);
    expect(countCalls(tool)).toBe(1);
  });
});
