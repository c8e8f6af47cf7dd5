import { connect, createServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { tieSockets } from './faulty-proxy.js';
import { listenFor } from './started.js';

/** `after`: what was asked is done, its answer is lost. `before`: what was asked is lost. */
type Cut = 'after' | 'before';

/** Stands between a client and its server, and cuts all connections at a request of the test's choice. */
export interface CuttingProxy {
  readonly port: number;
  /**
   * At the next request that holds the text, connections are cut, and none is taken until `heal`.
   * @returns a promise that resolves once they are
   */
  cut(when: Cut, text: string): Promise<void>;
  heal(): void;
  close(): Promise<void>;
}

export async function startCuttingProxy(target: number): Promise<CuttingProxy> {
  const sockets = new Set<Duplex>();
  let planned: { readonly when: Cut; readonly text: string } | null = null;
  let done = (): void => undefined;
  let broken = false;
  const breakAll = (): void => {
    broken = true;
    planned = null;
    for (const socket of sockets) socket.destroy();
    done();
  };
  const server = createServer((client) => {
    if (broken) return client.destroy();
    const upstream = connect(target, '127.0.0.1');
    let awaited = false;
    tieSockets(client, upstream, sockets);
    client.on('data', (chunk: Buffer) => {
      if (planned && chunk.includes(planned.text)) {
        if (planned.when === 'before') return breakAll();
        awaited = true;
      }
      upstream.write(chunk);
    });
    upstream.on('data', (chunk: Buffer) => {
      if (awaited) return breakAll();
      client.write(chunk);
    });
    return undefined;
  });
  const { port, close } = await listenFor(server);
  return {
    port,
    cut: (when, text) => {
      planned = { when, text };
      return new Promise((resolve) => (done = resolve));
    },
    heal: () => {
      broken = false;
    },
    close: () => {
      breakAll();
      return close();
    },
  };
}
