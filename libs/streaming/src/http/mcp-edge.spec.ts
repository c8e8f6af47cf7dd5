import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { edgeUnderTest, type EdgeUnderTest } from '../testing/edge-under-test.js';
import { ping } from '../testing/requests.js';
import type { McpEdgeOptions } from './edge-dependencies.js';

const running: EdgeUnderTest[] = [];
async function startServing(options?: McpEdgeOptions): Promise<EdgeUnderTest> {
  const edge = await edgeUnderTest(options);
  running.push(edge);
  return edge;
}
afterAll(async () => {
  await Promise.all(running.map((edge) => edge.stop()));
});

const call = (name: string) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } });

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await pause(2);
}

/** Sends raw bytes and returns everything that comes back until the server closes. */
function exchangeBytes(port: number, dependencies: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(port, '127.0.0.1', () => {
      for (const part of dependencies) socket.write(part);
    });
    socket.setEncoding('utf8').on('data', (text: string) => (received += text));
    socket.on('close', () => resolve(received)).on('error', reject);
  });
}

describe('McpEdge', () => {
  it('claims its path and what lies below, and nothing that merely begins alike', async () => {
    const { edge } = await startServing();
    for (const url of ['/mcp', '/mcp/', '/mcp?a=/b', '/mcp/x']) expect(edge.claims(url)).toBe(true);
    for (const url of ['/', '/mcpx', '/MCP', '/health', '/health/x', ''])
      expect(edge.claims(url)).toBe(false);
  });

  it('runs its checks before authentication for routes beside MCP as well', async () => {
    let left = 8;
    const preAuthRateLimiter = {
      check: () => Promise.resolve(left-- > 0 ? null : { limit: 8, window: 60, retryAfter: 6.5 }),
    };
    const { edge } = await startServing({ preAuthRateLimiter });
    const beside = createServer((request, response) => {
      void edge.refusalFor(request, response).then((refused) => {
        response.writeHead(refused?.status ?? 200, { Connection: 'close', ...refused?.headers }).end();
      });
    });
    await new Promise<void>((resolve) => beside.listen(0, '127.0.0.1', resolve));
    const { port } = beside.address() as AddressInfo;
    const sendRaw = async (...headers: string[]) => {
      const head = ['GET /tools HTTP/1.1', ...headers, '', ''].join('\r\n');
      return (await exchangeBytes(port, [head])).split('\r\n');
    };
    expect((await sendRaw('Host: localhost:3001'))[0]).toContain('200');
    expect((await sendRaw('Host: localhost', 'Origin: http://localhost:5173'))[0]).toContain('200');
    expect((await sendRaw('Host: evil.example'))[0]).toContain('403');
    expect((await sendRaw('Host: localhost', 'Host: evil.example'))[0]).toContain('400');
    expect((await sendRaw('Host: localhost', 'Origin: https://evil.example'))[0]).toContain('403');
    while (left > 0) await sendRaw('Host: localhost');
    const limited = await sendRaw('Host: localhost');
    expect(limited[0]).toContain('429');
    expect(limited).toContain('Retry-After: 7');
    await edge.close();
    expect((await sendRaw('Host: localhost'))[0]).toContain('503');
    await new Promise((resolve) => beside.close(resolve));
  });

  it('shows an authenticator no header whose name has an underscore', async () => {
    const { ask, authenticator } = await startServing();
    await ask({ headers: { X_MCP_API_KEY: 'eve', 'X-MCP-API-Key': 'ada' }, body: ping() });
    expect(authenticator.seen[0]?.headers).toMatchObject({ 'x-mcp-api-key': 'ada' });
    expect(Object.keys(authenticator.seen[0]?.headers ?? {}).filter((name) => name.includes('_'))).toEqual(
      [],
    );
  });

  it('sends the challenge of its authenticator with a 401', async () => {
    const { ask, authenticator } = await startServing();
    authenticator.challenge = 'Bearer resource_metadata="https://mcp.example.com/x"';
    const answer = await ask({ headers: { 'X-MCP-API-Key': 'wrong' }, body: ping() });
    expect(answer.headers['www-authenticate']).toBe(authenticator.challenge);
    expect(answer.text).toBe('{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Unauthorized"}}');
  });

  it('sends no part of an answer that cannot be sent whole, and continues to serve', async () => {
    const { ask, authenticator, warnings } = await startServing();
    authenticator.challenge = 'Bearer realm="a\nb"';
    await expect(ask({ headers: { 'X-MCP-API-Key': 'wrong' }, body: ping() })).rejects.toThrow(
      'socket hang up',
    );
    expect(warnings.at(-1)).toMatch(/^TypeError/);
    expect((await ask({ body: ping() })).status).toBe(200);
  });

  it('logs why an authenticator failed, and does not return it to the caller', async () => {
    const { ask, warnings } = await startServing();
    const answer = await ask({ headers: { 'X-MCP-API-Key': 'broken' }, body: ping() });
    expect(answer.text).not.toContain('db.internal');
    const [report = ''] = warnings;
    expect(report).toMatch(/^authenticator failed: Error: the key store at db\.internal is down\n +at .+/);
  });

  it('quotes a refused origin in one log line', async () => {
    const { ask, warnings } = await startServing();
    await ask({ headers: { Origin: 'https://evil.example"x' }, body: ping() });
    expect(warnings).toEqual([
      'Origin refused: "https://evil.example\\"x" (server.allowedOrigins; CORS of an application does not apply to MCP)',
    ]);
    await ask({ headers: { Origin: `https://${'x'.repeat(10_000)}.example` }, body: ping() });
    expect(warnings[1]?.length).toBeLessThan(400);
  });

  it('logs a refused host once, and a bounded number of them', async () => {
    const { ask, warnings } = await startServing();
    for (const host of ['mcp.example.com', 'mcp.example.com', 'b.example'])
      await ask({ headers: { Host: host }, body: ping() });
    expect(warnings).toEqual([
      'Host refused: "mcp.example.com" (server.allowedHosts)',
      'Host refused: "b.example" (server.allowedHosts)',
    ]);
    for (let at = 0; at < 40; at += 1) await ask({ headers: { Host: `h${at}.example` }, body: ping() });
    expect(warnings).toHaveLength(20);
  });

  it('aborts the call when its client goes away', async () => {
    const { tools, port } = await startServing();
    const body = JSON.stringify(call('wait'));
    const socket = connect(port, '127.0.0.1');
    socket.write(
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await until(() => tools.contexts.length === 1);
    const signal = tools.contexts[0]?.signal;
    expect(signal?.aborted).toBe(false);
    socket.destroy();
    await until(() => signal?.aborted === true);
    expect(signal?.reason).toBe('client_disconnect');
  });

  it('does not authenticate a client that disconnects in the middle of its body', async () => {
    const { edge, authenticator, port, warnings } = await startServing();
    const socket = connect(port, '127.0.0.1');
    socket.write(
      'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"jsonrpc"',
    );
    await until(() => edge.answering === 1);
    socket.destroy();
    await until(() => edge.answering === 0);
    expect(authenticator.seen).toEqual([]);
    expect(warnings).toEqual([]);
  });

  it('does not abort a call whose answer was read', async () => {
    const { ask, tools } = await startServing();
    await ask({ body: call('echo') });
    expect(tools.contexts[0]?.signal.aborted).toBe(false);
  });

  it('refuses a body that does not arrive in time', async () => {
    const { port } = await startServing({ bodyTimeout: 30 });
    const received = await exchangeBytes(port, [
      'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"jsonrpc"',
    ]);
    expect(received).toMatch(/^HTTP\/1\.1 408 /);
    expect(received).toContain('"code":-32700');
  });

  it('lets a client read why a large body was refused, and keeps the connection usable', async () => {
    const { port } = await startServing({ maxBodySize: 1000 });
    const body = JSON.stringify(ping());
    const head = (length: number, more = '') =>
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${more}\r\n`;
    const received = await exchangeBytes(port, [
      head(2_000_000),
      'x'.repeat(2_000_000),
      head(body.length, 'Connection: close\r\n'),
      body,
    ]);
    expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 200']);
  });

  it('accepts several bodies in one packet', async () => {
    const { port } = await startServing();
    const one = (more = '') => {
      const body = JSON.stringify(ping());
      return `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;
    };
    const received = await exchangeBytes(port, [one() + one() + one('Connection: close\r\n')]);
    expect(received.match(/HTTP\/1\.1 200/g)).toHaveLength(3);
  });

  describe('closing', () => {
    it('refuses new requests while running ones finish', async () => {
      const { edge, ask, tools } = await startServing();
      const slow = ask({ body: call('wait') });
      await until(() => tools.contexts.length === 1);
      const closed = edge.close(10_000);
      const refused = await ask({ body: ping() });
      expect([refused.status, refused.json().error]).toEqual([503, { code: -32000, message: 'server busy' }]);
      tools.release();
      expect((await slow).json()).toMatchObject({ result: { isError: false } });
      await closed;
    });

    it('aborts what still runs after the grace period, and answers it', async () => {
      const { edge, ask, tools } = await startServing();
      const slow = ask({ body: call('wait') });
      await until(() => tools.contexts.length === 1);
      await edge.close(10);
      expect((await slow).json()).toMatchObject({ result: { isError: true, cancelled: true } });
      expect(tools.contexts[0]?.signal.reason).toBe('server_shutdown');
    });

    it('is at once when nothing runs', async () => {
      const { edge } = await startServing();
      await expect(edge.close(60_000)).resolves.toBeUndefined();
    });
  });

  it('never returns the text of an internal error', async () => {
    const { ask, sessions, warnings } = await startServing();
    sessions.find = () => Promise.reject(new Error('redis at 10.0.0.7 refused'));
    const answer = await ask({ headers: { 'Mcp-Session-Id': 'x' }, body: ping(4) });
    expect([answer.status, answer.json()]).toEqual([
      500,
      { jsonrpc: '2.0', id: 4, error: { code: -32603, message: 'Internal error' } },
    ]);
    expect(warnings).toEqual(['Error: redis at 10.0.0.7 refused']);
  });
});

describe('McpEdge options', () => {
  it('warns once where nothing bounds how many streams are open', async () => {
    const { ask, warnings } = await startServing({ maxConcurrentDispatchers: null });
    await ask({ headers: { Accept: 'text/event-stream' }, body: ping() });
    expect(warnings).toEqual(['maxConcurrentDispatchers is null: nothing bounds how many streams are open']);
  });

  it('takes blank lists as none', async () => {
    const { ask } = await startServing({ allowedOrigins: [' '], allowedHosts: [' '] });
    expect((await ask({ body: ping() })).status).toBe(200);
  });
});
