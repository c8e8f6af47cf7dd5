import { createServer, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { listenFor } from './started.js';

/** A proxy on this machine. */
export interface AppendingProxy {
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * A proxy that passes every header on in its order, `Host` as well, and appends its own headers at the end, as Caddy does.
 * @param own headers of the proxy. Default: what says for whom it asks
 */
export async function startAppendingProxy(
  target: number,
  own: readonly string[] = ['X-Forwarded-For', '203.0.113.9', 'X-Forwarded-Proto', 'https'],
): Promise<AppendingProxy> {
  const server = createServer({ maxHeaderSize: 65_536 }, (request, response) => {
    const onward = httpRequest({
      host: '127.0.0.1',
      port: target,
      method: request.method,
      path: request.url,
      headers: [...request.rawHeaders, ...own],
      setHost: false,
    });
    onward.on('error', () => response.destroy());
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(response);
    });
    request.pipe(onward);
  });
  server.maxHeadersCount = 0;
  const { port, close } = await listenFor(server);
  return { port, stop: close };
}

/** Sends bytes and returns everything that comes back until the other side closes. */
export function sendBytes(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    socket.setEncoding('utf8').on('data', (part: string) => (received += part));
    socket.on('close', () => resolve(received)).on('error', reject);
  });
}

/** The statuses of all answers in what came back. */
export const statusesIn = (received: string): number[] =>
  [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));

/** So many headers, the shortest that there can be. */
export const fillers = (count: number): string[] => Array.from({ length: count }, () => 'D0:1');
