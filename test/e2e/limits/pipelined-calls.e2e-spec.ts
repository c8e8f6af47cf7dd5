import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { callTool, rpc, type Service, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const MIB = 1024 * 1024;
const HEAP = { NODE_OPTIONS: '--max-old-space-size=400' };
const ADA = { 'X-MCP-API-Key': 'key-of-ada' };
const EVE = { 'X-MCP-API-Key': 'key-of-eve' };
/** 20 rows of 160 KB: an answer of 3.2 MB. */
const LARGE = { class_name: 'Report', limit: 20 };
const seed = {
  schemas: [{ className: 'Report', fields: { title: { type: 'String' }, body: { type: 'String' } } }],
  objects: {
    Report: Array.from({ length: 20 }, (_, at) => ({
      objectId: `r${at}`,
      title: `Report ${at}`,
      body: 'x'.repeat(160_000),
    })),
  },
};
const config = {
  server: { requestRateLimit: null },
  agents: { ada: { rateLimit: 1_000_000 }, eve: { rateLimit: 1_000_000 } },
  auth: ['ada', 'eve'].map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
  policy: { unlistedClasses: 'allow' },
};

/** Bytes of memory that a process has. */
function memoryOf(pid: number): number {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}

const toolCall = (name: string, args: object, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
});
const posted = (message: object, accept = 'application/json', headers: Record<string, string> = EVE) => {
  const body = JSON.stringify(message);
  const fields = { Host: 'localhost', Accept: accept, 'Content-Type': 'application/json', ...headers };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST /mcp HTTP/1.1\r\n${lines.join('')}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
};
const listTools = posted({ jsonrpc: '2.0', id: 1, method: 'tools/list' });

describe('requests that one connection sends without waiting', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ config, seed, env: HEAP });
  });
  afterAll(() => service.stop());

  const open = (): Socket => {
    const port = Number(new URL(service.url).port);
    return connect({ port, host: '127.0.0.1' }).on('error', () => undefined);
  };
  const count = () => callTool(service, 'count_objects', { class_name: 'Report' }, ADA);

  it.each([
    ['lists of tools', listTools.repeat(400), 40],
    ['large results', posted(toolCall('query_class', LARGE)).repeat(100), 20],
    ['large results on streams', posted(toolCall('query_class', LARGE), 'text/event-stream').repeat(100), 20],
  ])(
    'and whose answers it does not read, do not fill the memory: %s',
    async (_, requests, connections) => {
      const before = memoryOf(service.pid);
      const sockets = Array.from({ length: connections }, () => {
        const socket = open().pause();
        socket.write(requests);
        return socket;
      });
      let most = 0;
      const looking = setInterval(() => (most = Math.max(most, memoryOf(service.pid))), 100);
      try {
        const until = Date.now() + 8_000;
        while (Date.now() < until) expect((await count()).data).toMatchObject({ count: 20 });
      } finally {
        clearInterval(looking);
        for (const socket of sockets) socket.destroy();
      }
      expect(service.isRunning()).toBe(true);
      expect(most - before).toBeLessThan(300 * MIB);
      expect((await count()).isError).toBe(false);
    },
    60_000,
  );

  it('are each answered, in their order', async () => {
    const socket = open();
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    socket.write(
      Array.from({ length: 60 }, (_, at) =>
        posted(toolCall('count_objects', { class_name: 'Report' }, `#${at}`)),
      ).join(''),
    );
    await vi.waitFor(() => expect(text.match(/HTTP\/1\.1 200 /g)).toHaveLength(60), { timeout: 20_000 });
    expect([...text.matchAll(/"id":"#(\d+)"/g)].map(([, id]) => Number(id))).toEqual(
      Array.from({ length: 60 }, (_, at) => at),
    );
    socket.destroy();
  });

  it('leave nothing behind when it is closed: bodies, streams and calls', async () => {
    const initialized = await rpc(
      service,
      'initialize',
      { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'p', version: '1' } },
      { ...EVE },
    );
    const session = { ...EVE, 'Mcp-Session-Id': initialized.headers.get('mcp-session-id') ?? '' };
    const body = { ...toolCall('query_class', LARGE), filler: 'x'.repeat(900_000) };
    const listen = `GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n${Object.entries(
      session,
    )
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')}\r\n`;
    // Together more bodies than an address may have at once, and more streams than there may be.
    for (let time = 0; time < 8; time += 1) {
      const socket = open().pause();
      socket.write(
        posted(toolCall('query_class', LARGE)).repeat(4) + posted(body).repeat(6) + listen.repeat(30),
      );
      await new Promise((resolve) => setTimeout(resolve, 400));
      socket.destroy();
    }
    const response = await fetch(service.url, {
      method: 'POST',
      headers: { ...EVE, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(200);
    await response.arrayBuffer();
    const gone = new AbortController();
    const stream = await fetch(service.url, {
      headers: { ...session, Accept: 'text/event-stream' },
      signal: gone.signal,
    });
    expect(stream.status).toBe(200);
    gone.abort();
  }, 60_000);
});

describe('a large batch on a pipe', () => {
  const CLI = fileURLToPath(new URL('../../../dist/bundle/cli.js', import.meta.url));
  const folder = makeFolder('pipe');
  let child: ChildProcess;
  let text = '';
  beforeAll(() => {
    writeFileSync(join(folder, 'seed.json'), JSON.stringify(seed));
    writeFileSync(
      join(folder, 'parley.yaml'),
      stringify({ ...config, database: { uri: 'embedded', seed: './seed.json' } }),
    );
    child = spawn(process.execPath, [CLI, 'stdio'], {
      cwd: folder,
      env: { PATH: process.env['PATH'], HOME: folder, MCP_API_KEY: 'key-of-eve', ...HEAP },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  });
  afterAll(async () => {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.stdin?.end();
    await ended;
  });

  const lines = () => text.split('\n').filter((line) => line !== '');
  const answered = (number: number) =>
    vi.waitFor(() => expect(text.endsWith('\n') && lines().length).toBe(number), {
      timeout: 60_000,
      interval: 20,
    });
  const say = (message: unknown) => child.stdin?.write(`${JSON.stringify(message)}\n`);
  type Answered = { id: number; result?: unknown; error?: { code: number; message: string } }[];

  it('is answered within bounds, with a refusal for each message that has no room, as often as it comes', async () => {
    say({
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'p', version: '1' } },
    });
    await answered(1);
    const before = memoryOf(child.pid as number);
    let most = 0;
    const looking = setInterval(() => (most = Math.max(most, memoryOf(child.pid as number))), 50);
    for (let time = 0; time < 5; time += 1) {
      text = '';
      say(Array.from({ length: 50 }, (_, at) => toolCall('query_class', LARGE, at)));
      await answered(1);
      expect(Buffer.byteLength(text)).toBeLessThan(8.1 * MIB);
      const answers = JSON.parse(text) as Answered;
      expect(answers.map(({ id }) => id)).toEqual(Array.from({ length: 50 }, (_, at) => at));
      const results = answers.filter(({ result }) => result).length;
      expect(results).toBeGreaterThan(0);
      const refusals = answers.flatMap(({ error }) => (error ? [error] : []));
      expect(refusals).toHaveLength(50 - results);
      for (const { code, message } of refusals) {
        expect(code).toBe(-32000);
        expect(message).toMatch(
          /^(Not run: the answers to this batch reached its limit of 8 MiB|Done, but its answer goes beyond the 8 MiB)/,
        );
      }
    }
    clearInterval(looking);
    expect(most - before).toBeLessThan(300 * MIB);
    text = '';
    say({ jsonrpc: '2.0', id: 'after', method: 'ping' });
    await answered(1);
    expect(JSON.parse(text)).toEqual({ jsonrpc: '2.0', id: 'after', result: {} });
  }, 120_000);
});
