import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, type Database, post, rpc, startDatabase } from '../../support/service.js';

const file = (name: string) => fileURLToPath(new URL(`../../fixtures/module-apps/${name}`, import.meta.url));
const PATIENT = { timeout: 30_000, interval: 20 };
const KEY = { 'X-MCP-API-Key': 'key-of-the-desk' };
const INITIALIZE = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'reader', version: '1' },
};

interface ChildMessage {
  readonly url?: string;
  readonly begun?: true;
  readonly aborted?: string;
}

/** An application of somebody's with Parley in it. */
interface Application {
  readonly url: string;
  readonly child: ChildProcess;
  /** What it said to the test, in order. */
  readonly messages: readonly ChildMessage[];
}

const running: ChildProcess[] = [];

async function start(options: object): Promise<Application> {
  const child = fork(file('posts-application.mjs'), [JSON.stringify(options)], {
    execArgv: [],
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  running.push(child);
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const messages: ChildMessage[] = [];
  child.on('message', (message) => messages.push(message as ChildMessage));
  await Promise.race([once(child, 'message'), once(child, 'exit')]);
  const url = messages[0]?.url;
  if (url === undefined) throw new Error(`the application ended:\n${stderr}`);
  return { url, child, messages };
}
afterAll(() => running.forEach((child) => child.kill('SIGKILL')));

const sessionOf = async (at: { url: string }) => {
  const { headers } = await rpc(at, 'initialize', INITIALIZE, KEY);
  return { ...KEY, 'Mcp-Session-Id': headers.get('mcp-session-id') ?? '' };
};

interface State {
  readonly resources: string[];
  readonly listeners: string[];
}

describe('importing Parley', () => {
  it('opens nothing, listens to nothing and reads nothing of how it is configured', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [file('import-alone.mjs')]);
    const { before, after, read, exported } = JSON.parse(stdout) as {
      before: State;
      after: State;
      read: string[];
      exported: string[];
    };
    expect(exported).toContain('ParleyModule');
    expect(after.listeners).toEqual(before.listeners);
    // What holds a process open, or wakes it up; that this one ended by itself says the same.
    expect(after.resources.filter((name) => /Time|TCP|UDP|Worker|Message|Signal|FSEvent/.test(name))).toEqual(
      [],
    );
    expect(read.filter((name) => /PARLEY|PARSE|MONGO|REDIS|MCP_|OTEL|every name/.test(name))).toEqual([]);
  });
});

describe('an application that gets SIGTERM', () => {
  it('takes no more calls, ends its streams, lets its calls end, and is gone', async () => {
    const app = await start({ database: { uri: 'embedded' }, server: { drainTimeout: 20 } });
    const session = await sessionOf(app);
    const stream = await fetch(app.url, { headers: { ...session, Accept: 'text/event-stream' } });
    expect(stream.status).toBe(200);
    const call = callTool(app, 'waits', {}, KEY);
    await vi.waitFor(() => expect(app.messages).toContainEqual({ begun: true }), PATIENT);
    const gone = once(app.child, 'exit');
    app.child.kill('SIGTERM');
    // It ends only because the application is closing.
    await stream.text();
    const refused = await rpc(app, 'tools/list', {}, KEY).then(
      ({ status }) => status,
      () => 'closed',
    );
    expect([503, 'closed']).toContain(refused);
    app.child.send('end');
    expect(JSON.parse((await call).text)).toEqual({ aborted: false });
    // Nest ends the process by the signal that it was sent.
    expect(await gone).toEqual([null, 'SIGTERM']);
  });
});

describe('two applications that share one Redis and one database', () => {
  let database: Database;
  let redis: RedisServer;
  let here: Application;
  let there: Application;
  beforeAll(async () => {
    [database, redis] = await Promise.all([startDatabase(POSTS_SEED), startRedis()]);
    const options = {
      database: { uri: database.uri },
      redis: { url: redis.url },
      server: { sessions: 'strict', drainTimeout: 1 },
    };
    [here, there] = await Promise.all([start(options), start(options)]);
  });
  afterAll(async () => {
    for (const { child } of [here, there]) child.kill('SIGKILL');
    await Promise.all([database.stop(), redis.stop()]);
  });

  it('know the sessions of each other, and their end', async () => {
    const session = await sessionOf(here);
    expect((await rpc(there, 'tools/list', {}, session)).status).toBe(200);
    expect((await fetch(there.url, { method: 'DELETE', headers: session })).status).toBe(204);
    expect((await rpc(here, 'tools/list', {}, session)).status).toBe(404);
  });

  it('cancel calls that run at the other', async () => {
    const session = await sessionOf(here);
    const params = { name: 'waits', arguments: {} };
    const call = { jsonrpc: '2.0', id: 'long', method: 'tools/call', params };
    const answer = post(here, JSON.stringify(call), session);
    await vi.waitFor(() => expect(here.messages).toContainEqual({ begun: true }), PATIENT);
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'long' } };
    await post(there, JSON.stringify(cancel), session);
    await vi.waitFor(() => expect(here.messages.some((one) => 'aborted' in one)).toBe(true), PATIENT);
    await answer.catch(() => 'broken off');
  });

  it('count the calls of a caller together', async () => {
    const session = await sessionOf(here);
    const codes: (string | undefined)[] = [];
    // Eight are permitted, wherever they are made; some were made before.
    for (let round = 0; round < 5; round++)
      for (const at of [here, there])
        codes.push((await callTool(at, 'query_class', { class_name: 'Post' }, session)).code);
    expect(codes.indexOf('rate_limited')).toBeGreaterThan(0);
    expect(codes.indexOf('rate_limited')).toBeLessThanOrEqual(8);
    expect(new Set(codes.slice(codes.indexOf('rate_limited')))).toEqual(new Set(['rate_limited']));
  });
});
