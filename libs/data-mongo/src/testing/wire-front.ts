import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { BSON, type Document } from 'mongodb';
import type { FastReads } from '../fast-reads/fast-reads.js';

const OP_MSG = 2013;
const BEFORE_DOCUMENT = 21;

/** A command that a client sent, and whether it came over a connection of `FastReads`. */
export interface SentCommand {
  readonly name: string;
  readonly command: Document;
  readonly fast: boolean;
}

/** What becomes of an answer on its way back: the chunks that are written instead, one after the other. */
export type ChangeAnswer = (answer: Buffer, sent: SentCommand) => readonly Buffer[];

/** Stands in front of a MongoDB server without TLS: reports what is sent to it, and may change its answers. */
export class WireFront {
  readonly sent: SentCommand[] = [];
  /** Cursors that the server ended on request. */
  cursorsKilled = 0;
  /** Default: answers stay as they are. */
  change: ChangeAnswer | null = null;
  private readonly sockets = new Set<Socket>();
  private readonly fast = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private readonly target: URL,
  ) {
    server.on('connection', (client: Socket) => this.waitForConnection(client));
  }

  /** @param uri of a server with one address */
  static async start(uri: string): Promise<WireFront> {
    const server = createServer();
    const front = new WireFront(server, new URL(uri));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return front;
  }

  /** The URI that leads through here, with the options of the server's. */
  get uri(): string {
    const uri = new URL(this.target);
    uri.host = `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    uri.searchParams.set('directConnection', 'true');
    return uri.href;
  }

  /** Connections of `FastReads` that are open. */
  get fastConnections(): number {
    return this.fast.size;
  }

  /** Bytes that nobody asked for, to every connection of `FastReads`. */
  push(bytes: Buffer): void {
    for (const client of this.fast) client.write(bytes);
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private waitForConnection(client: Socket): void {
    const { hostname, port } = this.target;
    const behind = connect(Number(port || 27_017), hostname);
    const awaited = new Map<number, SentCommand>();
    for (const socket of [client, behind]) {
      this.sockets.add(socket);
      socket.setNoDelay(true).on('error', () => undefined);
      socket.on('close', () => {
        this.sockets.delete(socket);
        this.fast.delete(socket);
        client.destroy();
        behind.destroy();
      });
    }
    eachMessage(client, (message) => {
      const command = toDocument(message);
      const [name = ''] = Object.keys(command ?? {});
      if (command?.['client']?.driver?.name === 'parley-reads') this.fast.add(client);
      const one: SentCommand = { name, command: command ?? {}, fast: this.fast.has(client) };
      this.sent.push(one);
      awaited.set(message.readInt32LE(4), one);
      behind.write(message);
    });
    eachMessage(behind, (message) => {
      const one = awaited.get(message.readInt32LE(8));
      awaited.delete(message.readInt32LE(8));
      if (one?.name === 'killCursors')
        this.cursorsKilled += ((toDocument(message)?.['cursorsKilled'] as unknown[]) ?? []).length;
      const chunks = one && this.change ? this.change(message, one) : [message];
      void writeApart(client, chunks);
    });
  }
}

/** Resolves when a read would be sent over a connection beside the driver. Rejects after five seconds. */
export async function waitForConnection(reads: FastReads): Promise<void> {
  const until = performance.now() + 5_000;
  for (let taken = reads.take(); ; taken = reads.take()) {
    if (taken) return taken.release();
    if (performance.now() > until) throw new Error('no connection beside the driver was opened');
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Each chunk arrives by itself. */
async function writeApart(socket: Socket, chunks: readonly Buffer[]): Promise<void> {
  for (const [at, chunk] of chunks.entries()) {
    if (at > 0) await new Promise((resolve) => setTimeout(resolve, 1));
    if (!socket.destroyed) socket.write(chunk);
  }
}

function eachMessage(socket: Socket, take: (message: Buffer) => void): void {
  let rest = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.byteLength >= 4 && rest.byteLength >= rest.readInt32LE(0)) {
      const message = rest.subarray(0, rest.readInt32LE(0));
      rest = rest.subarray(message.byteLength);
      take(message);
    }
  });
}

/** The document of the first section; undefined for the messages that the driver greets older servers with. */
function toDocument(message: Buffer): Document | undefined {
  if (message.readInt32LE(12) !== OP_MSG) return undefined;
  const document = message.subarray(BEFORE_DOCUMENT);
  return BSON.deserialize(document.subarray(0, document.readInt32LE(0)));
}
