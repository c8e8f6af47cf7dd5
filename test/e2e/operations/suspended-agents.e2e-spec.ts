import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { askModern, callModern } from '../../support/modern-call.js';
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
import { runCommand } from '../../support/terminal.js';

const WAIT = { timeout: 20_000, interval: 50 };
const REASON = 'its key is in a public repository';
const SAID = "agent 'analyst' is suspended";
const key = (agent: string) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const ANALYST = key('analyst');
const COUNT = { class_name: 'Post' };

const folder = makeFolder('suspended');
let redis: RedisServer;
let database: Database;
let here: Service;
let there: Service;

const free = { tenantId: 'acme', rateLimit: 1_000_000 };
const agents = { analyst: free, other: free, chief: free };
const config = (name: string) => ({
  agents,
  auth: Object.keys(agents).map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
  policy: POSTS_POLICY,
  plugins: [fileURLToPath(new URL('../../fixtures/plugins/slow.mjs', import.meta.url))],
  console: { operators: ['chief'] },
  tasks: { heartbeat: 0.5, lifetime: 600 },
  audit: { sinks: [{ kind: 'file', path: join(folder, `${name}.jsonl`) }] },
});
const startReplica = (name: string) =>
  startService({ config: config(name), env: { REDIS_URL: redis.url, MONGODB_URI: database.uri } });

beforeAll(async () => {
  [redis, database] = await Promise.all([startRedis(), startDatabase(POSTS_SEED)]);
  [here, there] = await Promise.all([startReplica('here'), startReplica('there')]);
}, 120_000);
afterAll(async () => {
  await Promise.all([here, there].map((service) => service?.stop()));
  await Promise.all([database?.stop(), redis?.stop()]);
});

async function parley(
  args: readonly string[],
  { origin }: Pick<Service, 'origin'> = here,
  agent: string | null = 'chief',
) {
  const env = { PARLEY_URL: origin, ...(agent !== null && { PARLEY_API_KEY: `key-of-${agent}` }) };
  const { code, stdout, stderr } = await runCommand([...args], '', { cwd: tmpdir(), env });
  return { code, stdout, stderr };
}
const change = (action: 'suspend' | 'resume', service: Service, agent = 'analyst') =>
  fetch(`${service.origin}/console/api/suspensions/${agent}`, {
    method: 'POST',
    headers: { ...key('chief'), 'Content-Type': 'application/json', 'X-Parley-Console': '1' },
    body: JSON.stringify({ action, ...(action === 'suspend' && { reason: REASON }) }),
  });
const modern = (method: string, params: Record<string, unknown>) => askModern(there, method, params, ANALYST);
const refusedThere = () =>
  vi.waitFor(async () => expect((await rpc(there, 'tools/list', {}, ANALYST)).status).toBe(403), WAIT);
const admittedThere = () =>
  vi.waitFor(async () => expect((await rpc(there, 'tools/list', {}, ANALYST)).status).toBe(200), WAIT);
const readRecords = (name: string) =>
  readFileSync(join(folder, `${name}.jsonl`), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('an agent that an operator suspends', { timeout: 120_000 }, () => {
  it('is refused by both eras, routes and downloads of every replica, and nobody else is', async () => {
    const session = await openSession(there, ANALYST, '2025-06-18');
    const ordered = await callTool(there, 'export_data', { ...COUNT, delivery: 'resource' }, ANALYST);
    const { path } = ordered.data as { path: string };
    expect((await change('suspend', here)).status).toBe(200);
    await refusedThere();
    const legacy = await rpc(there, 'tools/call', { name: 'count_objects', arguments: COUNT }, session);
    expect([legacy.status, legacy.body.error]).toEqual([403, { code: -32001, message: SAID }]);
    const called = await callModern(there, 'count_objects', COUNT, { headers: ANALYST });
    expect([called.status, called.body.error]).toEqual([403, { code: -32001, message: SAID }]);
    const stream = await fetch(there.url, {
      headers: { ...session, Accept: 'text/event-stream' },
    });
    expect([stream.status, await stream.text()]).toEqual([403, expect.stringContaining(SAID)]);
    for (const route of [path, '/tools', '/approvals']) {
      const answer = await fetch(there.origin + route, { headers: ANALYST });
      const text = await answer.text();
      expect([route, answer.status, text]).toEqual([route, 403, expect.stringContaining(SAID)]);
      expect(text).not.toContain(REASON);
    }
    expect(await callTool(there, 'count_objects', COUNT, key('other'))).toMatchObject({ isError: false });
    expect((await change('resume', there)).status).toBe(200);
    await vi.waitFor(async () => expect((await rpc(here, 'tools/list', {}, ANALYST)).status).toBe(200), WAIT);
    expect((await fetch(there.origin + path, { headers: ANALYST })).status).toBe(200);
  });

  it('loses its streams, running calls and tasks on the replica where they run', async () => {
    const until = join(folder, 'never');
    const listening = await fetch(there.url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'text/event-stream',
        'MCP-Protocol-Version': '2026-07-28',
        'Mcp-Method': 'subscriptions/listen',
        ...ANALYST,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 7,
        method: 'subscriptions/listen',
        params: {
          notifications: { toolsListChanged: true },
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientCapabilities': {},
          },
        },
      }),
    });
    expect(listening.status).toBe(200);
    const running = callModern(there, 'slow_read', { until }, { headers: ANALYST });
    const begun = await modern('tools/call', { name: 'slow_read', arguments: { until } });
    const { taskId } = begun.body['result'] as { taskId: string };
    expect(taskId).toEqual(expect.any(String));
    expect((await change('suspend', here)).status).toBe(200);
    expect(await listening.text()).toContain('"id":7');
    expect((await running).text).toContain('Ended before it was done: the agent is suspended');
    await change('resume', here);
    await admittedThere();
    await vi.waitFor(async () => {
      const { body } = await modern('tasks/get', { taskId });
      expect(body['result']).toMatchObject({ status: 'cancelled' });
    }, WAIT);
  });

  it('is suspended by command, listed, and shown in the status with who and since when', async () => {
    const suspended = await parley(['agents', 'suspend', 'analyst', '--reason', REASON]);
    expect([suspended.code, suspended.stderr]).toEqual([0, '']);
    expect(JSON.parse(suspended.stdout)).toMatchObject({ name: 'analyst', changed: true });
    await refusedThere();
    const again = await parley(['agents', 'suspend', 'analyst', '--reason', 'another'], there);
    expect(JSON.parse(again.stdout)).toMatchObject({ changed: false, suspended: { reason: REASON } });
    const listed = await parley(['agents', 'list'], there);
    expect(listed.stdout).toMatch(new RegExp(`analyst +suspended +20\\d\\d-\\S* +chief +${REASON}`));
    expect(listed.stdout).not.toContain('key:');
    expect(listed.stdout).toMatch(/other +active/);
    expect((await parley(['status'], there)).stdout).toMatch(/suspended\.0\.agent: analyst\n/);
    expect((await parley(['agents', 'resume', 'analyst', '--reason', 'new key'], there)).code).toBe(0);
    await admittedThere();
    const records = readRecords('here').filter(({ action }) => action === 'console.suspend_agent');
    expect(records.at(-1)).toMatchObject({
      type: 'operator_action',
      target: 'analyst',
      reason: REASON,
      agent_name: 'chief',
      principal: expect.stringMatching(/^key:/),
    });
    expect(readRecords('there').filter(({ cause }) => cause === 'suspended')[0]).toMatchObject({
      type: 'authentication',
      success: false,
      agent_name: 'analyst',
    });
  });

  it('has to be one of the configuration, not the agent of the operator, and suspended for a reason', async () => {
    const unknown = await parley(['agents', 'suspend', 'nobody', '--reason', REASON]);
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      expect.stringMatching(/^refused \(404\): no such agent; the configuration has: .+\n$/),
    ]);
    const own = await parley(['agents', 'suspend', 'chief', '--reason', REASON]);
    expect([own.code, own.stderr]).toEqual([1, expect.stringContaining('you act as this agent')]);
    const blind = await parley(['agents', 'suspend', 'analyst']);
    expect([blind.code, blind.stderr]).toEqual([2, expect.stringContaining('--reason is needed')]);
    const foreign = await parley(['agents', 'suspend', 'analyst', '--reason', REASON], here, 'other');
    expect([foreign.code, foreign.stderr]).toEqual([1, expect.stringContaining('refused (403)')]);
    expect((await rpc(here, 'tools/list', {}, ANALYST)).status).toBe(200);
  });

  it.each([['list'], ['suspend', 'analyst', '--reason', REASON], ['resume', 'analyst']])(
    'needs a key and a service that answers: parley agents %s',
    async (...args) => {
      const blind = await parley(['agents', ...args], here, null);
      expect([blind.code, blind.stderr]).toEqual([2, expect.stringContaining('PARLEY_API_KEY')]);
      const nowhere = await parley(['agents', ...args], { origin: 'http://127.0.0.1:65000' });
      expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining('nothing answers at')]);
    },
  );

  it('stays suspended when every process ends and another one starts', async () => {
    await change('suspend', here);
    await Promise.all([here.stop(), there.stop()]);
    [here, there] = await Promise.all([startReplica('here'), startReplica('there')]);
    expect((await rpc(here, 'tools/list', {}, ANALYST)).status).toBe(403);
    await change('resume', here);
    await admittedThere();
  });
});

describe('without Redis', () => {
  it('a suspension counts for the process that was asked, and the command says so', async () => {
    const alone = await startService({ config: config('alone'), env: { MONGODB_URI: database.uri } });
    try {
      const { code, stderr } = await parley(['agents', 'suspend', 'analyst', '--reason', REASON], alone);
      expect([code, stderr]).toEqual([
        0,
        expect.stringContaining('Without Redis this counts for the process'),
      ]);
      expect((await rpc(alone, 'tools/list', {}, ANALYST)).status).toBe(403);
      expect((await rpc(here, 'tools/list', {}, ANALYST)).status).toBe(200);
    } finally {
      await alone.stop();
    }
  });
});
