import { chmodSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { EvaluationOrder } from '../query/evaluation-order.js';
import { catalogOf, type FsyncMode, openJournal } from '../storage/journal.js';
import { Store } from '../storage/store.js';
import { removeExpired } from '../storage/expiry.js';
import { removeAbandonedSocket } from './abandoned-socket.js';
import { serveConnection } from './connection.js';
import { ServerState } from './server-state.js';

/** How often expired documents, idle cursors and old sessions are looked for, in milliseconds. */
const SWEEP_MS = 30_000;

/** Complete settings of a server. */
export interface WireServerOptions {
  /** `127.0.0.1`, `::1` or `localhost`; anything else is refused. */
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** A unix socket instead of host and port; made with mode 0600. */
  readonly path: string | undefined;
  /** Replica set name; undefined answers as a standalone. */
  readonly replSet: string | undefined;
  /** File the data is kept in; undefined keeps it in memory only. */
  readonly dataFile: string | undefined;
  /** A data file whose content a server in memory starts with; undefined starts empty. */
  readonly initialData: string | undefined;
  /** When changes go to the data file's disk. */
  readonly fsync: FsyncMode;
  readonly maxConnections: number;
  /** Answers `$search`, `$searchMeta` and `$vectorSearch`. */
  readonly search: boolean;
  /** Seed of the order that filters are evaluated in; undefined evaluates them as they are written. */
  readonly reorderFilters: number | undefined;
}

/** Where a server listens. */
export interface WireServerAddress {
  readonly host: string;
  readonly port: number;
  readonly uri: string;
}

const loopback = new Set(['127.0.0.1', '::1', 'localhost']);

/** The listening server. */
export class WireServer {
  private readonly sockets = new Set<Socket>();
  private readonly sweeper: NodeJS.Timeout;

  private constructor(
    private readonly state: ServerState,
    private readonly server: Server,
    private readonly path: string | undefined,
  ) {
    this.sweeper = setInterval(() => this.sweepSafely(), SWEEP_MS).unref();
  }

  /** Opens the data file and listens. Errors: a TypeError for an address that is not local, journal and socket errors. */
  static async listen(
    options: WireServerOptions,
  ): Promise<{ server: WireServer; address: WireServerAddress }> {
    if (options.path === undefined && !loopback.has(options.host)) {
      throw new TypeError(`the embedded database listens on loopback only, not on ${options.host}`);
    }
    if (options.dataFile !== undefined && options.initialData !== undefined)
      throw new TypeError('initialData is for a server in memory, dataFile for one that keeps its data');
    const opened =
      options.dataFile === undefined ? undefined : await openJournal(options.dataFile, options.fsync);
    const initial = options.initialData === undefined ? undefined : catalogOf(options.initialData);
    const state = new ServerState(
      new Store(opened?.journal, opened?.catalog ?? initial),
      options.replSet,
      options.maxConnections,
      options.search,
      options.reorderFilters === undefined ? undefined : new EvaluationOrder(options.reorderFilters),
    );
    if (options.path !== undefined) await removeAbandonedSocket(options.path);
    const server = createServer();
    const wire = new WireServer(state, server, options.path);
    server.on('connection', (socket) => wire.accept(socket));
    try {
      await listening(server, options);
    } catch (error) {
      await wire.close();
      throw error;
    }
    const address = addressOf(server, options);
    state.address = options.path ?? `${address.host}:${address.port}`;
    return { server: wire, address };
  }

  /** Ends all connections and writes what is pending. */
  async close(): Promise<void> {
    clearInterval(this.sweeper);
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const socket of this.sockets) socket.destroy();
    await closed;
    await this.state.store.close();
    if (this.path !== undefined) await rm(this.path, { force: true });
  }

  private accept(socket: Socket): void {
    if (this.sockets.size >= this.state.maxConnections) {
      socket.destroy();
      return;
    }
    this.sockets.add(socket);
    this.state.connectionsEver += 1;
    this.state.connections = this.sockets.size;
    socket.on('close', () => {
      this.sockets.delete(socket);
      this.state.connections = this.sockets.size;
    });
    serveConnection(this.state, socket, this.state.connectionsEver);
  }

  private sweepSafely(): void {
    try {
      this.sweep();
    } catch (error) {
      const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
      process.emitWarning('removing what has expired failed', { type: 'EmbeddedMongoFault', detail });
    }
  }

  private sweep(): void {
    const now = Date.now();
    const { store, cursors, sessions } = this.state;
    cursors.closeIdle(now);
    const forgotten = new Set(sessions.expire(now));
    cursors.closeWhere((cursor) => cursor.sessionKey !== undefined && forgotten.has(cursor.sessionKey));
    removeExpired(store, now);
  }
}

function listening(server: Server, options: WireServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    const ready = (): void => {
      server.off('error', reject);
      resolve();
    };
    if (options.path === undefined) {
      server.listen(options.port, options.host, ready);
      return;
    }
    server.listen(options.path, ready);
    // The socket exists once listen returns; nobody else may connect in between.
    chmodSync(options.path, 0o600);
  });
}

function addressOf(server: Server, options: WireServerOptions): WireServerAddress {
  if (options.path !== undefined) {
    return {
      host: options.path,
      port: 0,
      uri: `mongodb://${encodeURIComponent(options.path)}/?directConnection=true`,
    };
  }
  const { port } = server.address() as AddressInfo;
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return { host: options.host, port, uri: `mongodb://${host}:${port}/?directConnection=true` };
}
