import { Double } from 'bson';
import type { Socket } from 'node:net';
import { MongoError } from '../errors.js';
import { encodeReply, Framer, parseRequest } from '../wire/message.js';
import { Closed, dispatch } from './dispatch.js';
import type { OpenConnection, ServerState } from './server-state.js';
import type { ClientInfo } from './access.js';

/** With this many requests waiting for their turn the socket is not read until half of them are done. */
const MAX_WAITING = 100;

/** A client that speaks TLS to a server that does not. As a length it would be a message of 64 KB, which no client begins with. */
const isTlsHello = (chunk: Buffer): boolean => chunk[0] === 0x16 && chunk[1] === 3 && chunk[2] === 1;

/** Serves one socket: its requests run one after the other, in the order they came. */
export function serveConnection(
  server: ServerState,
  socket: Socket,
  connectionId: number,
  member: number,
): void {
  const client: ClientInfo = {
    connectionId,
    address: `${socket.remoteAddress ?? 'unix'}:${socket.remotePort ?? 0}`,
    member,
    appName: undefined,
    metadata: undefined,
    user: undefined,
    login: undefined,
  };
  const framer = new Framer();
  let waiting = 0;
  let turn: Promise<void> = Promise.resolve();
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  const open: OpenConnection = { client, close: () => socket.destroy() };
  server.connected.add(open);
  socket.on('close', () => {
    server.connected.delete(open);
    server.operations.stopConnection(connectionId);
  });
  const run = async (message: Buffer): Promise<void> => {
    await answer(server, client, socket, message);
    waiting -= 1;
    if (waiting < MAX_WAITING / 2) socket.resume();
  };
  socket.once('data', (chunk: Buffer) => {
    if (isTlsHello(chunk)) socket.destroy();
  });
  socket.on('data', (chunk) => {
    try {
      for (const message of framer.push(chunk)) {
        waiting += 1;
        turn = turn.then(() => run(message));
      }
    } catch {
      socket.destroy();
    }
    if (waiting >= MAX_WAITING) socket.pause();
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
    await server.pauses[client.member]?.over();
    if (socket.destroyed) return;
    const reply = await dispatch(server, client, request);
    if (reply instanceof Closed) socket.destroy();
    else if (request.wantsReply) await send(socket, encodeReply(request, reply));
  } catch (error) {
    // Bytes that are no message, or a reply that cannot be encoded: there is nothing sensible to answer.
    if (!(error instanceof MongoError) || error.code !== 238) return void socket.destroy();
    const { code, codeName, message: errmsg } = error;
    const request = { requestId: message.readInt32LE(4), legacy: false };
    await send(socket, encodeReply(request, { ok: new Double(0), errmsg, code, codeName }));
  }
}

/** Writes a reply and waits while the client does not read, so that answers do not pile up in memory. */
async function send(socket: Socket, reply: Buffer): Promise<void> {
  if (socket.destroyed || socket.write(reply) || socket.destroyed) return;
  await new Promise<void>((resolve) => {
    const go = (): void => {
      socket.off('drain', go);
      socket.off('close', go);
      resolve();
    };
    socket.on('drain', go);
    socket.on('close', go);
  });
}
