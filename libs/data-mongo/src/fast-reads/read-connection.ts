import { randomInt } from 'node:crypto';
import { connect as connectTcp, isIP, type Socket, type TcpSocketConnectOpts } from 'node:net';
import { type as systemType } from 'node:os';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { type Document, MongoNetworkError, MongoServerError } from 'mongodb';
import { type Abortable, isAborted, LazyAbort, whenAborted } from '#core';
import { IncomingMessage, replyDocument, requestMessage, UnexpectedReply } from './messages.js';
import { SCRAM_SHA_256, type ScramLogin } from './scram-login.js';

/** Where a connection leads, and how. */
export interface ReadServer {
  readonly host: string;
  readonly port: number;
  /** The replica set that it must be the primary of. Null: a server alone, or a router. */
  readonly setName: string | null;
  /** How the host is looked up and reached. Default: as Node does. */
  readonly tcp?: Partial<TcpSocketConnectOpts>;
  /** Null: without TLS. */
  readonly tls: ConnectionOptions | null;
  /** Null: without a user. */
  readonly login: ScramLogin | null;
  /** Milliseconds until a connection must be open and logged in. */
  readonly connectTimeout: number;
  /** Milliseconds without an answer after which a connection ends. 0: it waits as long as the operation does. */
  readonly socketTimeout: number;
  readonly appName: string;
}

/** Whose connection it is. */
export interface ConnectionOwner {
  /** The connection takes the next command. */
  release(connection: ReadConnection): void;
  handleEnd(connection: ReadConnection): void;
}

interface Waiting {
  readonly id: number;
  readonly resolve: (answer: Document) => void;
  readonly reject: (error: unknown) => void;
  readonly stopListening: () => void;
}

const KEEP_ALIVE_AFTER = 120_000;

/** No two requests of this process have the same, on whatever connection: an answer that strays to another one answers nothing there. */
let lastRequest = randomInt(0x7fffffff);
const nextRequest = (): number => (lastRequest = (lastRequest + 1) & 0x7fffffff);

/**
 * A connection to one server for one command at a time. An answer is taken only when it is whole, alone, and names the request that waits for
 * it. After anything else, also bytes that come while nothing waits, the connection ends, and so do commands that an abort leaves without
 * their answer. What is left on a connection can therefore never be the answer to a later command.
 */
export class ReadConnection {
  private readonly incoming = new IncomingMessage();
  private waiting: Waiting | null = null;
  private ended = false;

  private constructor(
    readonly server: ReadServer,
    private readonly socket: Socket,
    private readonly owner: ConnectionOwner,
  ) {
    socket.on('data', (chunk: Buffer) => this.noteArrival(chunk));
    socket.on('error', (error) => this.end(error));
    socket.on('close', () => this.end(new Error('the server closed the connection')));
    socket.on('timeout', () => {
      if (this.waiting) this.end(new Error('the server did not answer in time'));
    });
    socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_AFTER);
  }

  /**
   * Connects, checks that the server is the one that takes reads, and logs in.
   * @throws Error when any of this fails or takes longer than `connectTimeout`
   */
  static async open(server: ReadServer, owner: ConnectionOwner): Promise<ReadConnection> {
    const late = new LazyAbort<Error>();
    const { host, port, tcp, tls } = server;
    const socket = tls
      ? connectTls({ ...tcp, ...nameServer(server), ...tls, host, port })
      : connectTcp({ ...tcp, host, port });
    const connection = new ReadConnection(server, socket, owner);
    const timer = setTimeout(
      () => late.abort(new Error('the server did not answer in time')),
      server.connectTimeout,
    );
    try {
      await waitForConnection(socket, server.tls ? 'secureConnect' : 'connect', late);
      await connection.greet(late);
      socket.setTimeout(server.socketTimeout);
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Whether it can take a command. A connection that has ended never does again. */
  get free(): boolean {
    return !this.ended && this.waiting === null;
  }

  /**
   * Sends a command and resolves to its answer, in which the documents of a batch are bytes.
   * @throws MongoServerError when the server refuses, MongoNetworkError when the connection ended, the reason of an abort
   */
  send(command: Document, operation: Abortable): Promise<Document> {
    return new Promise((resolve, reject) => {
      if (isAborted(operation)) throw operation.signal.reason;
      if (!this.free) throw new MongoNetworkError('the connection has ended');
      const id = nextRequest();
      const message = requestMessage(id, command);
      const stopListening = whenAborted(operation, () => this.end(operation.signal.reason, 'aborted'));
      this.waiting = { id, resolve, reject, stopListening };
      this.socket.write(message);
    });
  }

  /** After the last command of a read. */
  release(): void {
    this.owner.release(this);
  }

  /** Ends the connection. May be called more than once. */
  destroy(): void {
    this.end(new Error('the connection was closed'));
  }

  private noteArrival(chunk: Buffer): void {
    const { waiting } = this;
    if (!waiting) return this.end(new UnexpectedReply('an answer that nothing waits for'));
    let answer: Document;
    try {
      const message = this.incoming.add(chunk);
      if (!message) return;
      answer = replyDocument(message, waiting.id);
    } catch (error) {
      return this.end(error);
    }
    this.waiting = null;
    waiting.stopListening();
    if (Number(answer['ok']) === 1) waiting.resolve(answer);
    else waiting.reject(new MongoServerError(answer));
  }

  /** @param why `aborted`: the error is what the command fails with. `lost`: the connection was lost by it. */
  private end(error: unknown, why: 'aborted' | 'lost' = 'lost'): void {
    if (this.ended) return;
    this.ended = true;
    this.socket.destroy();
    const { waiting } = this;
    this.waiting = null;
    if (waiting) {
      waiting.stopListening();
      waiting.reject(
        why === 'aborted'
          ? error
          : new MongoNetworkError('the connection was lost', { cause: error as Error }),
      );
    }
    this.owner.handleEnd(this);
  }

  private async greet(late: Abortable): Promise<void> {
    const { login, setName, appName } = this.server;
    const hello = await this.send(
      {
        hello: 1,
        client: {
          application: { name: appName },
          driver: { name: 'parley-reads', version: '1' },
          os: { type: systemType() },
          platform: `Node.js ${process.version}`,
        },
        ...(login && { saslSupportedMechs: login.asked }),
        $db: 'admin',
      },
      late,
    );
    if (hello['isWritablePrimary'] !== true) throw new Error('the server is not a primary');
    if (setName !== null && hello['setName'] !== setName)
      throw new Error('the server is of another replica set');
    if (!login) return;
    const known: unknown = hello['saslSupportedMechs'];
    if (!Array.isArray(known) || !known.includes(SCRAM_SHA_256))
      throw new Error(`the user cannot log in with ${SCRAM_SHA_256}`);
    await login.logIn((command, database) => this.send({ ...command, $db: database }, late));
  }
}

/** A certificate is checked against the name; an address is no name that a client may announce. */
function nameServer({ host }: ReadServer): ConnectionOptions {
  return isIP(host) === 0 ? { servername: host } : {};
}

function waitForConnection(
  socket: Socket,
  event: 'connect' | 'secureConnect',
  late: Abortable,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const stopListening = whenAborted(late, () => reject(late.signal.reason));
    socket.once(event, () => {
      stopListening();
      resolve();
    });
    socket.once('error', reject);
  });
}
