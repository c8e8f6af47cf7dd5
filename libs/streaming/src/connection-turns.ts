import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests of one connection that wait while an earlier one is answered. */
const MAX_WAITING = 100;

/** `gone`: the connection was closed, and nobody is there to be answered. `busy`: too many wait already. */
export type Turn = 'now' | 'gone' | 'busy';

/**
 * Requests that a client sends on one connection without waiting for answers. HTTP/1.1 sends the answers in the order of the
 * requests, so that one prepared earlier would only wait in memory: a request is worked on once every earlier answer of its
 * connection was handed to the operating system.
 */
export class ConnectionTurns {
  /** Of each connection what ends the waiting of its requests. */
  private readonly waiting = new WeakMap<Socket, Set<() => void>>();

  /** Resolves when the answer to the request is the next one of its connection. */
  async of({ socket }: IncomingMessage, response: ServerResponse): Promise<Turn> {
    // Node gives a response its socket when its turn comes.
    if (response.socket !== null) return 'now';
    if (socket.destroyed) return 'gone';
    const waiting = this.waitingOn(socket);
    if (waiting.size >= MAX_WAITING) return 'busy';
    await new Promise<void>((resolve) => {
      waiting.add(resolve);
      response.once('socket', () => {
        waiting.delete(resolve);
        resolve();
      });
    });
    return socket.destroyed ? 'gone' : 'now';
  }

  private waitingOn(socket: Socket): Set<() => void> {
    const known = this.waiting.get(socket);
    if (known) return known;
    const waiting = new Set<() => void>();
    this.waiting.set(socket, waiting);
    socket.once('close', () => {
      for (const end of waiting) end();
      waiting.clear();
    });
    return waiting;
  }
}
