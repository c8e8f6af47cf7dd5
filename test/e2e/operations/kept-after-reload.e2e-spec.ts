import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { askModern, FOLLOWS_TASKS } from '../../support/modern-call.js';
import { callTool, rpc, type Service, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

/* What Parley keeps of a call for its client, once a reload took the rights away with which it was read. */

const WAIT = { timeout: 20_000, interval: 50 };
const KEY = { 'X-MCP-API-Key': 'key-of-analyst' };
const folder = makeFolder('kept');

const { classes } = POSTS_POLICY;
const HIDDEN = { policy: { ...POSTS_POLICY, classes: { ...classes, Post: { hidden: true } } } };
const FILTERED = { analyst: { classes: { except: ['Post'] } } };
const configOf = ({ policy = POSTS_POLICY, analyst = {} }: { policy?: object; analyst?: object } = {}) => ({
  reload: { interval: 0.1 },
  server: { stateKey: 'a key of thirty-two characters, or more' },
  subscriptions: { debounce: 0.05 },
  agents: {
    analyst: {
      permissions: 'admin',
      tenantId: 'acme',
      rateLimit: 1_000_000,
      writes: 'proposed',
      ...analyst,
    },
    writer: { permissions: 'admin', tenantId: 'acme' },
  },
  auth: ['analyst', 'writer'].map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
  policy,
  plugins: [fileURLToPath(new URL('../../fixtures/plugins/slow.mjs', import.meta.url))],
});

let service: Service;
beforeAll(async () => {
  service = await startService({
    config: configOf(),
    seed: POSTS_SEED,
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
}, 90_000);

async function serve(config?: Parameters<typeof configOf>[0]): Promise<void> {
  const versions = () => service.output().stderr.split('is served, policy version').length;
  const before = versions();
  service.reconfigure(configOf(config));
  await vi.waitFor(() => expect(versions()).toBeGreaterThan(before), WAIT);
}

let signals = 0;
const signal = () => join(folder, String((signals += 1)));

interface Task {
  readonly taskId: string;
  readonly status: string;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
  readonly inputRequests?: unknown;
}

const CAPABILITIES = { ...FOLLOWS_TASKS, elicitation: {} };
const modern = async (method: string, params: Record<string, unknown>) =>
  (await askModern(service, method, params, KEY, CAPABILITIES)).body['result'] as Task;
const begin = async (name: string, until: string) =>
  (await modern('tools/call', { name, arguments: { until } })).taskId;
const reach = (taskId: string, status: string) =>
  vi.waitFor(async () => {
    const task = await modern('tasks/get', { taskId });
    expect(task.status).toBe(status);
    return task;
  }, WAIT);

describe.each([
  ['the policy hides the class', HIDDEN],
  ['the agent loses the class', FILTERED],
])('after a reload in which %s', (_, narrowed) => {
  it('the result of a task is not shown, until the rights are back', async () => {
    const until = signal();
    const taskId = await begin('slow_read', until);
    writeFileSync(until, '');
    expect(JSON.stringify((await reach(taskId, 'completed')).result)).toContain('60');
    await serve(narrowed);
    const withheld = await modern('tasks/get', { taskId });
    expect(withheld).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('changed') },
    });
    expect(withheld).not.toHaveProperty('result');
    await serve();
    expect(JSON.stringify((await reach(taskId, 'completed')).result)).toContain('60');
  });

  it('a task that reads is run with the rights of now', async () => {
    const until = signal();
    const taskId = await begin('slow_read', until);
    await vi.waitFor(() => expect(existsSync(`${until}.begun`)).toBe(true), WAIT);
    await serve(narrowed);
    writeFileSync(until, '');
    const { result } = await reach(taskId, 'completed');
    expect(result).toMatchObject({ isError: true });
    expect(JSON.stringify(result)).not.toContain('60');
    await serve();
  });

  it('the question of a task is asked again with the rights of now', async () => {
    const until = signal();
    const taskId = await begin('slow_question', until);
    writeFileSync(until, '');
    expect(JSON.stringify(await reach(taskId, 'input_required'))).toContain('60 posts');
    await serve(narrowed);
    expect(JSON.stringify(await modern('tasks/get', { taskId }))).not.toContain('60 posts');
    expect((await reach(taskId, 'completed')).result).toMatchObject({ isError: true });
    await serve();
  });

  it('the answer of a call is not sent on the stream that its client takes up again', async () => {
    const opened = await rpc(service, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} }, KEY);
    const session = {
      ...KEY,
      'Mcp-Session-Id': String(opened.headers.get('mcp-session-id')),
      'MCP-Protocol-Version': '2025-11-25',
    };
    const until = signal();
    const leave = new AbortController();
    const params = { name: 'slow_read', arguments: { until } };
    const stream = await fetch(service.url, {
      method: 'POST',
      signal: leave.signal,
      headers: {
        ...session,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    });
    const first = await stream.body?.getReader().read();
    const [, last = ''] = /^id: (\S+)/.exec(Buffer.from(first?.value ?? []).toString()) ?? [];
    leave.abort();
    const ended = () => service.output().stderr.split('call tool=slow_read').length;
    const before = ended();
    writeFileSync(until, '');
    await vi.waitFor(() => expect(ended()).toBeGreaterThan(before), WAIT);
    const resume = async () => {
      const headers = { ...session, Accept: 'text/event-stream', 'Last-Event-ID': last };
      const resumed = await fetch(service.url, { headers });
      return { status: resumed.status, text: await resumed.text() };
    };
    await serve(narrowed);
    expect(await resume()).toMatchObject({ status: 400, text: expect.stringContaining('Unknown') });
    await serve();
    expect(await resume()).toMatchObject({ status: 200, text: expect.stringContaining('60') });
  });
});

it('a change set is not watched any more by an agent that may not read it', async () => {
  const propose = async (name: string) => {
    const args = { class_name: 'Author', object_id: 'a1', fields: { name } };
    return String((await callTool(service, 'update_object', args, KEY)).data['change_set']);
  };
  const uri = `parse://changes/${await propose('Anna')}`;
  const opened = await rpc(service, 'initialize', { protocolVersion: '2025-06-18', capabilities: {} }, KEY);
  const session = { ...KEY, 'Mcp-Session-Id': String(opened.headers.get('mcp-session-id')) };
  const listen = async () => {
    const leave = new AbortController();
    const headers = { ...session, Accept: 'text/event-stream' };
    const { body } = await fetch(service.url, { headers, signal: leave.signal });
    const heard = { text: '', leave: () => leave.abort() };
    const hear = async () => {
      for await (const chunk of body ?? []) heard.text += Buffer.from(chunk).toString();
    };
    hear().catch(() => undefined);
    return heard;
  };
  const subscribe = (address: string) => rpc(service, 'resources/subscribe', { uri: address }, session);
  const before = await listen();
  for (const address of [uri, 'parse://Empty/count'])
    expect((await subscribe(address)).body.error).toBeUndefined();
  await propose('Anne');
  await vi.waitFor(() => expect(before.text).toContain(uri), WAIT);
  await serve({ analyst: { tools: { except: ['show_changes'] } } });
  const after = await listen();
  await propose('Annie');
  expect((await rpc(service, 'resources/read', { uri }, session)).body.error).toBeDefined();
  // What it may watch is reported as before.
  const writer = { 'X-MCP-API-Key': 'key-of-writer' };
  await callTool(service, 'create_object', { class_name: 'Empty', fields: { x: 1 } }, writer);
  await vi.waitFor(() => expect(after.text).toContain('parse://Empty/count'), WAIT);
  expect(after.text).not.toContain(uri);
  for (const stream of [before, after]) stream.leave();
});
