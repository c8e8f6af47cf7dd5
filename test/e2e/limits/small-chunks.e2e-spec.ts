import { connect } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Service, startService } from '../../support/service.js';

/** As many objects as bytes of a body would not fit into this heap. */
const HEAP = { NODE_OPTIONS: '--max-old-space-size=150' };
/** Less than the largest body. */
const BYTES = 1_000_000;

let service: Service;
beforeAll(async () => {
  service = await startService({
    config: {
      agents: { reader: {} },
      auth: [{ apiKey: 'a-key', agent: 'reader' }],
      server: { requireContentLength: false },
    },
    env: HEAP,
  });
}, 60_000);
afterAll(() => service?.stop());

/** Sends a body of spaces in chunks of one byte. @returns the status of the answer; undefined without one */
function sendBytes(count: number): Promise<string | undefined> {
  const { hostname, port } = new URL(service.origin);
  const head = [
    'POST /mcp HTTP/1.1',
    `Host: localhost:${port}`,
    'Content-Type: application/json',
    'Transfer-Encoding: chunked',
    'Connection: close',
  ];
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined).on('close', () => resolve(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]));
    socket.setEncoding('latin1').on('data', (text: string) => (answer += text));
    socket.write(`${head.join('\r\n')}\r\n\r\n${'1\r\n \r\n'.repeat(count)}0\r\n\r\n`);
  });
}

it(
  'a body of a stranger in chunks of one byte takes as much memory as one that comes at once',
  { timeout: 120_000 },
  async () => {
    expect(await sendBytes(BYTES)).toBe('400');
    expect(service.isRunning()).toBe(true);
  },
);
