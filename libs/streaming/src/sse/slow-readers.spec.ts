import { connect, type Socket } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { call, openListening, openSession, until } from '../testing/calls.js';
import { edgeUnderTest } from '../testing/edge-under-test.js';

const edge = await edgeUnderTest({ maxStreamBuffer: 4_096 });
afterAll(() => edge.stop());

/** A client that sends a request and reads nothing. */
function deaf(head: string, body = ''): Socket {
  const socket = connect({ port: edge.port, host: '127.0.0.1' });
  socket.on('error', () => undefined).pause();
  const length = body === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  socket.write(`${head}\r\nHost: localhost\r\nAccept: text/event-stream\r\n${length}\r\n${body}`);
  return socket;
}

const LARGE = { method: 'notifications/x', params: { text: 'x'.repeat(200_000) } };

describe('a client that does not read', () => {
  it('loses its listening stream, and others keep theirs', async () => {
    const [silent, reading] = [await openSession(edge), await openSession(edge)];
    const id = silent['Mcp-Session-Id'] as string;
    const stream = await openListening(edge, reading);
    deaf(`GET /mcp HTTP/1.1\r\nMcp-Session-Id: ${id}\r\nX-MCP-API-Key: ada`);
    await until(() => edge.edge.activeListeningStreamCount === 2);
    while (await edge.edge.notify(id, LARGE))
      await edge.edge.notify(reading['Mcp-Session-Id'] as string, LARGE);
    await until(() => edge.edge.activeListeningStreamCount === 1);
    const before = stream.messages().length;
    expect(await edge.edge.notify(reading['Mcp-Session-Id'] as string, LARGE)).toBe(true);
    await until(() => stream.messages().length > before);
    stream.leave();
  });

  it('has its call ended, whatever the tool still sends', async () => {
    edge.tools.work = async ({ progress, signal }) => {
      for (let step = 1; !signal.aborted; step += 1) {
        progress({ progress: step, message: 'x'.repeat(100_000) });
        await new Promise(setImmediate);
      }
    };
    const body = JSON.stringify(call('work', 1, { progressToken: 1 }));
    deaf('POST /mcp HTTP/1.1', body);
    await until(() => edge.abandoned.length === 1);
    expect(edge.abandoned[0]).toMatchObject({ reason: 'client_disconnect', request_id: 1 });
    await until(() => edge.edge.activeDispatcherCount === 0);
  });
});

describe('a request that names two hosts', () => {
  it('is refused, because a proxy may have checked the other one', async () => {
    for (const hosts of ['Host: localhost\r\nHost: evil.example', 'Host: localhost\r\nhOST: localhost']) {
      const socket = connect({ port: edge.port, host: '127.0.0.1' });
      let received = '';
      socket.setEncoding('utf8').on('data', (text: string) => (received += text));
      socket.write(`POST /mcp HTTP/1.1\r\n${hosts}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
      await until(() => received.includes('\r\n\r\n'));
      expect(received).toMatch(/^HTTP\/1\.1 400 /);
      socket.destroy();
    }
    expect(edge.authenticator.seen.length).toBeGreaterThan(0);
  });
});
