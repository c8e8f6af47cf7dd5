import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { MongoClient } from 'mongodb';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_SEED, POSTS_CONFIG } from '../../fixtures/posts.fixture.js';
import { type Database, post, type Service, startDatabase, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const config = { ...POSTS_CONFIG, plugins: [file('../../fixtures/plugins/telling.mjs')] };
const info = { name: 'scenario', version: '1.0.0' };

let redis: RedisServer;
let database: Database;
let admin: MongoClient;
let [one, two]: Service[] = [];
beforeAll(async () => {
  [redis, database] = await Promise.all([startRedis(), startDatabase(POSTS_SEED)]);
  const env = { MONGODB_URI: database.uri, REDIS_URL: redis.url };
  [one, two] = await Promise.all([startService({ config, env }), startService({ config, env })]);
  admin = new MongoClient(database.uri);
});
afterAll(async () => {
  await admin?.close();
  await Promise.all([one?.stop(), two?.stop()]);
  await Promise.all([redis?.stop(), database?.stop()]);
});

const at = (which: 'one' | 'two') => (which === 'one' ? one : two) as Service;

/** An official client in each way that it can speak. */
type Speaker = Pick<Client, 'callTool' | 'close'>;
const classic = async (url: string): Promise<Speaker> => {
  const client = new Client(info);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as never);
  return client;
};
const newer =
  (mode: unknown, supportedProtocolVersions?: string[]) =>
  async (url: string): Promise<Speaker> => {
    const client = new ModernClient(info, {
      versionNegotiation: { mode },
      ...(supportedProtocolVersions && { supportedProtocolVersions }),
    } as never);
    await client.connect(new ModernTransport(new URL(url)));
    return {
      callTool: (params: object, _schema: unknown, options: object) =>
        client.callTool(params as never, options as never),
      close: () => client.close(),
    } as unknown as Speaker;
  };

const SPEAKERS: readonly [client: string, connect: (url: string) => Promise<Speaker>][] = [
  ['the official client v1', classic],
  ['the official client v2 in 2025-11-25', newer('legacy')],
  ['the official client v2 in 2025-06-18', newer('legacy', ['2025-06-18'])],
  ['the official client v2 in 2026-07-28', newer({ pin: '2026-07-28' })],
];

describe.each(SPEAKERS)('%s', (_, connect) => {
  it('hears progress, and then the answer', async () => {
    const client = await connect(at('one').url);
    const heard: unknown[] = [];
    const answer = await client.callTool({ name: 'count_to', arguments: { steps: 3 } }, undefined, {
      onprogress: (progress) => void heard.push(progress),
    });
    expect(answer).toMatchObject({ isError: false });
    expect(heard).toEqual([1, 2, 3].map((progress) => ({ progress, total: 3 })));
    await client.close();
  });

  it('ends a running call by giving it up', async () => {
    const client = await connect(at('one').url);
    const giveUp = new AbortController();
    const ended = () =>
      at('one')
        .output()
        .stderr.match(/tool=until_cancelled .*code=cancelled/g);
    const before = ended()?.length ?? 0;
    const answer = client.callTool({ name: 'until_cancelled', arguments: {} }, undefined, {
      onprogress: () => giveUp.abort('enough'),
      signal: giveUp.signal,
    });
    await expect(answer).rejects.toThrow(/enough/);
    await expect.poll(() => ended()?.length, { timeout: 20_000 }).toBe(before + 1);
    await client.close();
  });
});

describe('a client that loses its connection and comes back', () => {
  it('gets the rest of its answer from another replica', async () => {
    const client = new Client(info);
    let broken = 0;
    let resumed = 0;
    const transport = new StreamableHTTPClientTransport(new URL(at('one').url), {
      fetch: async (input, init) => {
        const request = new Request(input, init);
        // A load balancer sends what comes back elsewhere.
        const url = request.method === 'GET' ? at('two').url : String(input);
        const response = await fetch(url, init);
        if (request.headers.has('last-event-id') && response.ok) resumed += 1;
        const isCall = typeof init?.body === 'string' && init.body.includes('until_cancelled');
        if (!isCall || !response.body || broken > 0) return response;
        broken += 1;
        const reader = response.body.getReader();
        const cut = new ReadableStream<Uint8Array>({
          async pull(controller) {
            const { value, done } = await reader.read();
            const text = value ? new TextDecoder().decode(value) : '';
            if (value) controller.enqueue(value);
            if (done || text.includes('notifications/progress')) {
              await reader.cancel();
              controller.error(new TypeError('terminated'));
            }
          },
        });
        return new Response(cut, { status: response.status, headers: response.headers });
      },
    });
    await client.connect(transport as never);
    const id = transport.sessionId;
    let heard = 0;
    const answer = client.callTool({ name: 'until_cancelled', arguments: {} }, undefined, {
      onprogress: () => void (heard += 1),
    });
    await expect.poll(() => [heard, broken, resumed], { timeout: 20_000 }).toEqual([1, 1, 1]);
    // DELETE ends the call, and the answer says so on the stream that was taken up again.
    const ended = await fetch(at('two').url, { method: 'DELETE', headers: { 'Mcp-Session-Id': String(id) } });
    expect(ended.status).toBe(204);
    expect(await answer).toMatchObject({ isError: true, cancelled: true });
    expect(heard).toBe(1);
    await client.close();
  });
});

describe('a client that listens at one replica and calls at the other', () => {
  it('is asked where it listens, and may answer anywhere', async () => {
    const opened = await post(
      at('one'),
      JSON.stringify({
        jsonrpc: '2.0',
        id: 0,
        method: 'initialize',
        params: { protocolVersion: '2025-06-18', capabilities: { elicitation: {} }, clientInfo: info },
      }),
    );
    const session = { 'Mcp-Session-Id': String(opened.headers.get('mcp-session-id')) };
    const stop = new AbortController();
    const stream = await fetch(at('two').url, {
      headers: { Accept: 'text/event-stream', ...session },
      signal: stop.signal,
    });
    let heard = '';
    const reading = (async () => {
      for await (const chunk of stream.body ?? []) heard += new TextDecoder().decode(chunk as Uint8Array);
    })().catch(() => undefined);
    await expect.poll(() => heard).toContain(': connected');

    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'ask_whether' } };
    const answer = post(at('one'), JSON.stringify(call), session);
    await expect.poll(() => heard, { timeout: 20_000 }).toContain('elicitation/create');
    const { id } = JSON.parse(/data: (\{.*elicitation\/create.*\})/.exec(heard)?.[1] ?? '{}') as {
      id: unknown;
    };
    const reply = { jsonrpc: '2.0', id, result: { action: 'accept', content: { sure: true } } };
    expect((await post(at('two'), JSON.stringify(reply), session)).status).toBe(202);
    expect(JSON.stringify((await answer).body)).toContain('accept');
    stop.abort();
    await reading;
  });
});

describe('an operation in the database', () => {
  const running = async () => {
    const { inprog } = await admin.db('admin').command({ currentOp: 1 });
    const operations = inprog as { command?: Record<string, unknown> }[];
    return operations.map(({ command }) => command).filter((command) => command?.['aggregate'] === 'Post');
  };
  const everyone = [{ $lookup: { from: 'Post', pipeline: [], as: 'other' } }, { $unwind: '$other' }];
  const pipeline = [...everyone, ...everyone, ...everyone, ...everyone, { $count: 'n' }];
  const call = {
    jsonrpc: '2.0',
    id: 'long',
    method: 'tools/call',
    params: { name: 'aggregate', arguments: { class_name: 'Post', pipeline } },
  };
  const initialize = {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: info },
  };
  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'long' } };

  it.each([
    ['a notification at the same replica', 'one', 'POST'],
    ['a notification at another replica', 'two', 'POST'],
    ['the end of its session at another replica', 'two', 'DELETE'],
  ] as const)(
    'ends with its call, which is ended by %s, and one record says so',
    async (_what, where, verb) => {
      const opened = await post(at('one'), JSON.stringify(initialize));
      const session = { 'Mcp-Session-Id': String(opened.headers.get('mcp-session-id')) };
      const records = () =>
        at('one')
          .output()
          .stderr.split('\n')
          .filter((line) => line.includes(session['Mcp-Session-Id']) && line.includes('code=cancelled'));
      const answer = post(at('one'), JSON.stringify(call), session);
      await expect.poll(running, { timeout: 20_000 }).toHaveLength(1);
      const response = await fetch(at(where).url, {
        method: verb,
        headers: { 'Content-Type': 'application/json', ...session },
        ...(verb === 'POST' && { body: JSON.stringify(cancel) }),
      });
      expect(response.status).toBe(verb === 'POST' ? 202 : 204);
      expect((await answer).body).toMatchObject({ id: 'long', result: { isError: true, cancelled: true } });
      await expect.poll(running, { timeout: 20_000 }).toEqual([]);
      await expect.poll(records, { timeout: 20_000 }).toHaveLength(1);
    },
  );
});

describe('a service that receives SIGTERM', () => {
  it('ends open streams with a last word, and then itself', async () => {
    const service = await startService({ config, env: { MONGODB_URI: database.uri } });
    const opened = await post(
      service,
      JSON.stringify({
        jsonrpc: '2.0',
        id: 0,
        method: 'initialize',
        params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: info },
      }),
    );
    const listening = await fetch(service.url, {
      headers: {
        Accept: 'text/event-stream',
        'Mcp-Session-Id': String(opened.headers.get('mcp-session-id')),
      },
    });
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const open = await fetch(service.url, {
      method: 'POST',
      headers: {
        Accept: 'text/event-stream',
        'Content-Type': 'application/json',
        'MCP-Protocol-Version': '2026-07-28',
        'Mcp-Method': 'subscriptions/listen',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 'open',
        method: 'subscriptions/listen',
        params: { notifications: { toolsListChanged: true }, _meta: meta },
      }),
    });
    const texts = Promise.all([listening.text(), open.text()]);
    expect(await service.stop()).toBe(0);
    const [heard, told] = await texts;
    expect(heard).toMatch(/^: connected/);
    expect(told).toMatch(/"id":"open","result":\{"resultType":"complete"[^\n]*\n\n$/);
  });
});

describe('parley stdio', () => {
  const CALLS = 4_000;
  const folder = makeFolder('stdio');
  beforeAll(() => {
    writeFileSync(join(folder, 'parley.yaml'), stringify(config));
  });

  const connect = async (env: Record<string, string> = {}) => {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [file('../../../dist/bundle/cli.js'), 'stdio'],
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', MONGODB_URI: database.uri, ...env },
      stderr: 'ignore',
    });
    const client = new Client(info);
    await client.connect(transport as never);
    return client;
  };

  it('serves an official client: rows, progress, cancellation', async () => {
    const client = await connect({ MCP_API_KEY: 'k' });
    const rows = await client.callTool({ name: 'count_objects', arguments: { class_name: 'Post' } });
    expect(rows.structuredContent).toMatchObject({ count: 60 });
    // A pipe may hand the client an answer together with the progress before it, which it then drops: no answer here.
    const giveUp = new AbortController();
    const answer = client.callTool({ name: 'until_cancelled', arguments: {} }, undefined, {
      onprogress: () => giveUp.abort('enough'),
      signal: giveUp.signal,
    });
    await expect(answer).rejects.toThrow(/enough/);
    await client.ping();
    await client.close();
  });

  it('answers although nobody reads its log', async () => {
    const child = spawn(process.execPath, [file('../../../dist/bundle/cli.js'), 'stdio'], {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', MONGODB_URI: database.uri, MCP_API_KEY: 'k' },
    });
    const refused = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'none', arguments: {} } };
    let answers = 0;
    child.stdout.setEncoding('utf8').on('data', (text: string) => (answers += text.split('\n').length - 1));
    // Far more lines than a pipe holds.
    child.stdin.end(`${JSON.stringify(refused)}\n`.repeat(CALLS));
    expect([await new Promise((resolve) => child.once('close', resolve)), answers]).toEqual([0, CALLS]);
  });
});
