import { EventEmitter, once } from 'node:events';
import { createRequire } from 'node:module';
import type { ParseServerProcess } from './parse-server-process.js';

/** The part of a `ws` client that is used here. */
interface Socket extends EventEmitter {
  send(text: string): void;
  close(): void;
}

/** One event of a live query. */
export interface LiveEvent {
  readonly op: string;
  readonly object?: Record<string, unknown>;
}

const require = createRequire(new URL('../oracles/package.json', import.meta.url));

/** A raw client of Parse LiveQuery with one subscription. */
export class LiveQueryClient {
  readonly events: LiveEvent[] = [];
  private readonly arrivals = new EventEmitter();

  private constructor(private readonly socket: Socket) {
    socket.on('message', (data: Buffer) => {
      this.events.push(JSON.parse(data.toString()) as LiveEvent);
      this.arrivals.emit('event');
    });
  }

  /** Connects and subscribes; resolves once the server has confirmed. */
  static async subscribe(
    server: ParseServerProcess,
    query: { className: string; where: unknown },
    sessionToken: string,
  ): Promise<LiveQueryClient> {
    const WebSocket = require('ws') as new (url: string) => Socket;
    const socket = new WebSocket(server.liveQueryUrl);
    await once(socket, 'open');
    const client = new LiveQueryClient(socket);
    socket.send(
      JSON.stringify({
        op: 'connect',
        applicationId: server.appId,
        restAPIKey: server.restAPIKey,
        sessionToken,
      }),
    );
    await client.until((events) => events.some(({ op }) => op === 'connected'));
    socket.send(JSON.stringify({ op: 'subscribe', requestId: 1, query, sessionToken }));
    await client.until((events) => events.some(({ op }) => op === 'subscribed'));
    return client;
  }

  /** Resolves as soon as the events so far meet the condition. */
  async until(enough: (events: readonly LiveEvent[]) => boolean): Promise<void> {
    while (!enough(this.events)) await once(this.arrivals, 'event');
  }

  close(): void {
    this.socket.close();
  }
}
