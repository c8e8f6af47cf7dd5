import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests of one connection that wait while an earlier one is answered. */
const MAX_WAITING = 100;

/** `gone`: the connection was closed, and nobody is there to be answered. `busy`: too many wait already. */
export type Turn = 'now' | 'gone' | 'busy';

/** Of each connection what has to know of its end, for answers that wait behind earlier ones. */
const closing = new WeakMap<Socket, Set<() => void>>();

function closingOf(socket: Socket): Set<() => void> {
  const known = closing.get(socket);
  if (known) return known;
  const listeners = new Set<() => void>();
  closing.set(socket, listeners);
  socket.once('close', () => {
    for (const listener of listeners) listener();
    listeners.clear();
  });
  return listeners;
}

/**
 * Calls the listener once, when the answer has left or can no longer leave. Node emits `close` on an answer only once its turn on the
 * connection has come: one that still waits behind earlier answers ends with the connection.
 */
export function onceClosed(
  { socket }: IncomingMessage,
  response: ServerResponse,
  listener: () => void,
): void {
  if (response.socket !== null) {
    response.once('close', listener);
    return;
  }
  if (socket.destroyed) {
    process.nextTick(listener);
    return;
  }
  const listeners = closingOf(socket);
  listeners.add(listener);
  response.once('socket', () => {
    if (listeners.delete(listener)) response.once('close', listener);
  });
}

/**
 * Requests that a client sends on one connection without waiting for answers. HTTP/1.1 sends the answers in the order of the
 * requests, so that one prepared earlier would only wait in memory: a request is worked on once every earlier answer of its
 * connection was handed to the operating system.
 */
export class ConnectionTurns {
  /** Requests that wait, by connection. */
  private readonly waiting = new WeakMap<Socket, number>();

  /** Resolves when the answer to the request is the next one of its connection. */
  of({ socket }: IncomingMessage, response: ServerResponse): Turn | Promise<Turn> {
    // Node gives a response its socket when its turn comes.
    if (response.socket !== null) return 'now';
    if (socket.destroyed) return 'gone';
    const waiting = this.waiting.get(socket) ?? 0;
    if (waiting >= MAX_WAITING) return 'busy';
    this.waiting.set(socket, waiting + 1);
    const ended = new Promise<void>((resolve) => {
      const listeners = closingOf(socket);
      const settle = () => {
        listeners.delete(settle);
        this.waiting.set(socket, (this.waiting.get(socket) ?? 1) - 1);
        resolve();
      };
      listeners.add(settle);
      response.once('socket', () => {
        if (listeners.has(settle)) settle();
      });
    });
    // Asked afterwards: a connection that breaks hands its next answer the socket before it closes.
    return ended.then(() => (socket.destroyed ? 'gone' : 'now'));
  }
}
