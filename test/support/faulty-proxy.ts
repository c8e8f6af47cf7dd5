import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** What becomes of a request. `after`: the server does it, and its answer is lost; `half`: its answer ends in the middle. */
export type ProxyFault =
  | { readonly kind: 'before' | 'after' | 'half' | 'hang' }
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly body: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** The server does it; its answer has another body, and status 200. */
  | { readonly kind: 'instead'; readonly body: string };

/** Stands before an HTTP server and its sockets. */
export interface FaultyProxy {
  readonly port: number;
  /** Requests to which the fault was applied, such as `PUT /parse/classes/Note/a`. */
  readonly struck: readonly string[];
  /** @param only of which requests, as they stand in `struck` */
  fail(fault: ProxyFault, only?: RegExp): void;
  /** Nothing listens until `heal`. */
  down(): Promise<void>;
  /** Cuts every open WebSocket. */
  cutSockets(): void;
  heal(): Promise<void>;
  close(): Promise<void>;
}

export async function startFaultyProxy(target: number): Promise<FaultyProxy> {
  const struck: string[] = [];
  const sockets = new Set<Duplex>();
  let planned: { readonly fault: ProxyFault; readonly only: RegExp } | null = null;
  const serve = (incoming: IncomingMessage, response: ServerResponse): void => {
    const name = `${incoming.method} ${incoming.url}`;
    const fault = planned?.only.test(name) ? planned.fault : null;
    if (fault) struck.push(name);
    if (!fault) return forward(target, incoming, (answer) => passOn(answer, response));
    switch (fault.kind) {
      case 'before':
        return void incoming.socket.destroy();
      case 'hang':
        return void incoming.resume();
      case 'answer':
        incoming.resume();
        response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
        return void response.end(fault.body);
      case 'after':
      case 'half':
      case 'instead':
        return forward(target, incoming, (answer) => spoil(answer, response, fault));
    }
  };
  const listen = async (port: number): Promise<Server> => {
    const server = createServer(serve);
    server.on('upgrade', (incoming: IncomingMessage, client: Duplex, head: Buffer) => {
      const upstream = connect(target, '127.0.0.1');
      tieSockets(client, upstream, sockets);
      client.pipe(upstream);
      upstream.pipe(client);
      const lines = incoming.rawHeaders.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`));
      upstream.write(`GET ${incoming.url} HTTP/1.1\r\n${lines.join('')}\r\n`);
      upstream.write(head);
    });
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return server;
  };
  let server: Server | null = await listen(0);
  const { port } = server.address() as AddressInfo;
  const down = async (): Promise<void> => {
    const closing = server;
    server = null;
    for (const socket of sockets) socket.destroy();
    if (!closing) return;
    closing.close();
    closing.closeAllConnections();
    await once(closing, 'close');
  };
  return {
    port,
    struck,
    fail: (fault, only = /./) => {
      struck.length = 0;
      planned = { fault, only };
    },
    down,
    cutSockets: () => {
      for (const socket of sockets) socket.destroy();
    },
    heal: async () => {
      planned = null;
      server ??= await listen(port);
    },
    close: down,
  };
}

/** Has two sockets end together, without a word. */
export function tieSockets(client: Duplex, upstream: Socket, sockets: Set<Duplex>): void {
  for (const socket of [client, upstream]) {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      client.destroy();
      upstream.destroy();
    });
  }
}

function forward(target: number, incoming: IncomingMessage, take: (answer: IncomingMessage) => void): void {
  const { method, url, headers } = incoming;
  const sent = request({ port: target, host: '127.0.0.1', method, path: url, headers, agent: false }, take);
  sent.on('error', () => incoming.socket.destroy());
  incoming.pipe(sent);
}

function passOn(answer: IncomingMessage, response: ServerResponse): void {
  response.writeHead(answer.statusCode ?? 502, answer.headers);
  answer.pipe(response);
}

function spoil(answer: IncomingMessage, response: ServerResponse, fault: ProxyFault): void {
  const chunks: Buffer[] = [];
  answer.on('data', (chunk: Buffer) => chunks.push(chunk));
  answer.on('end', () => {
    if (fault.kind === 'instead') {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(fault.body);
      return;
    }
    if (fault.kind === 'after') {
      response.socket?.destroy();
      return;
    }
    const body = Buffer.concat(chunks);
    response.writeHead(answer.statusCode ?? 502, { ...answer.headers, 'content-length': body.length });
    response.write(body.subarray(0, body.length >> 1), () => response.socket?.destroy());
  });
}
