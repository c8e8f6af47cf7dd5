import type { Socket } from 'node:net';
import { Framer } from '../wire/framer.js';
import { encodeReply, parseRequest } from '../wire/message.js';
import type { ClientInfo } from './command.js';
import { CLOSE, dispatch } from './dispatch.js';
import type { ServerState } from './server-state.js';

/** Most requests of one connection waiting for their turn; more are a client that does not read its answers. */
const MAX_WAITING = 1_000;

/** Serves one socket: its requests run one after the other, in the order they came. */
export function serveConnection(server: ServerState, socket: Socket, connectionId: number): void {
  const client: ClientInfo = {
    connectionId,
    address: `${socket.remoteAddress ?? 'unix'}:${socket.remotePort ?? 0}`,
    appName: undefined,
    metadata: undefined,
  };
  const framer = new Framer();
  let waiting = 0;
  let turn: Promise<void> = Promise.resolve();
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('close', () => server.operations.stopConnection(connectionId));
  socket.on('data', (chunk) => {
    try {
      for (const message of framer.push(chunk)) {
        waiting += 1;
        turn = turn.then(async () => {
          await answer(server, client, socket, message);
          waiting -= 1;
        });
      }
    } catch {
      socket.destroy();
    }
    if (waiting > MAX_WAITING) socket.destroy();
  });
}

async function answer(
  server: ServerState,
  client: ClientInfo,
  socket: Socket,
  message: Buffer,
): Promise<void> {
  if (socket.destroyed) return;
  try {
    const request = parseRequest(message);
    const reply = await dispatch(server, client, request);
    if (reply === CLOSE) socket.destroy();
    else if (request.wantsReply && !socket.destroyed) socket.write(encodeReply(request, reply));
  } catch {
    // Bytes that are no message, or a reply that cannot be encoded: there is nothing sensible to answer.
    socket.destroy();
  }
}
