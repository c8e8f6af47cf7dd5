import { chmodSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { EvaluationOrder } from '../query/evaluation-order.js';
import { type FsyncMode, loadCatalog, openJournal } from '../storage/journal.js';
import { DocumentStore, removeExpired } from '../storage/store.js';
import { type EmbeddedUser, Users } from './access.js';
import { serveConnection } from './connection.js';
import { ReplicaSet, ServerState } from './server-state.js';

/** Removes a unix socket that a crashed server left behind; anything else at the path stays. */
async function removeAbandonedSocket(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isSocket()) return;
  const refused = await new Promise<boolean>((resolve) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(false);
    });
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
  if (refused) await rm(path, { force: true });
}

/** How often expired documents, idle cursors and old sessions are looked for, in milliseconds. */
const SWEEP_MS = 30_000;

/** The options of the database, complete. */
export interface WireServerOptions {
  readonly host: string;
  readonly port: number;
  readonly path: string | undefined;
  /** Undefined answers as a standalone. */
  readonly replSet: string | undefined;
  readonly members: number;
  readonly users: readonly EmbeddedUser[] | undefined;
  readonly tls: EmbeddedTls | undefined;
  readonly dataFile: string | undefined;
  readonly initialData: string | undefined;
  readonly fsync: FsyncMode;
  readonly maxConnections: number;
  readonly search: boolean;
  readonly reorderFilters: number | undefined;
}

/** A server that speaks TLS only: certificates and key as PEM text. */
export interface EmbeddedTls {
  readonly cert: string;
  readonly key: string;
  /** The authority of the clients' certificates; with it every client must present one. */
  readonly ca?: string;
}

/** What the process that started the server asks of it, other than over a connection. */
export type ServerControl =
  | { readonly kind: 'stepDown'; readonly seconds: number; readonly closeConnections: boolean }
  | { readonly kind: 'pause' | 'resume'; readonly member: number | undefined };

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
    /** One for each member. */
    private readonly servers: readonly Server[],
    private readonly path: string | undefined,
  ) {
    this.sweeper = setInterval(() => this.sweepSafely(), SWEEP_MS).unref();
  }

  /** Opens the data file and listens. Errors: a TypeError for an address that is not local, journal and socket errors. */
  static async listen(
    options: WireServerOptions,
  ): Promise<{ server: WireServer; address: WireServerAddress }> {
    if (!Number.isInteger(options.members) || options.members < 1 || options.members > 7)
      throw new TypeError('members is a whole number from 1 to 7');
    if (options.members > 1 && (options.path !== undefined || options.replSet === undefined))
      throw new TypeError('several members are a replica set that listens on ports');
    if (options.path === undefined && !loopback.has(options.host))
      throw new TypeError(`the embedded database listens on loopback only, not on ${options.host}`);
    if (options.dataFile !== undefined && options.initialData !== undefined)
      throw new TypeError('initialData is for a server in memory, dataFile for one that keeps its data');
    const opened =
      options.dataFile === undefined ? undefined : await openJournal(options.dataFile, options.fsync);
    const initial = options.initialData === undefined ? undefined : loadCatalog(options.initialData);
    const state = new ServerState(
      new DocumentStore(opened?.journal, opened?.catalog ?? initial),
      new ReplicaSet(options.replSet, options.members),
      options.users && new Users(options.users),
      options.maxConnections,
      options.search,
      options.reorderFilters === undefined ? undefined : new EvaluationOrder(options.reorderFilters),
    );
    if (options.path !== undefined) await removeAbandonedSocket(options.path);
    const servers = Array.from({ length: options.members }, () => serverFor(options));
    const wire = new WireServer(state, servers, options.path);
    try {
      for (const [member, server] of servers.entries()) {
        wire.serve(server, member, options.tls !== undefined);
        // The others take any free port.
        await startListening(server, member === 0 ? options : { ...options, port: 0 });
      }
    } catch (error) {
      await wire.close();
      throw error;
    }
    const ports = servers.map(readPort);
    state.replicas.addresses = ports.map((port) => options.path ?? `${formatHost(options)}:${port}`);
    return { server: wire, address: findServerAddress(ports, options) };
  }

  /** Ends all connections and writes what is pending. */
  async close(): Promise<void> {
    clearInterval(this.sweeper);
    const closed = this.servers.map(
      (server) => new Promise<void>((resolve) => server.close(() => resolve())),
    );
    for (const socket of this.sockets) socket.destroy();
    await Promise.all(closed);
    await this.state.store.journal?.close();
    if (this.path !== undefined) await rm(this.path, { force: true });
  }

  /** Errors: those of `ReplicaSet.stepDown`. */
  control(control: ServerControl): void {
    const { replicas, pauses } = this.state;
    if (control.kind === 'stepDown') {
      this.state.stepDown(replicas.primary ?? 0, control.seconds, control.closeConnections);
      return;
    }
    for (const [member, pause] of pauses.entries()) {
      if (control.member !== undefined && control.member !== member) continue;
      if (control.kind === 'pause') pause.begin();
      else pause.finish();
    }
  }

  private serve(server: Server, member: number, encrypted: boolean): void {
    server.on('connection', (socket: Socket) => {
      if (this.accept(socket) && !encrypted) serveConnection(this.state, socket, this.nextId(), member);
    });
    server.on('secureConnection', (socket: Socket) =>
      serveConnection(this.state, socket, this.nextId(), member),
    );
    // A client that did not accept the certificate, or has none: the handshake reports it.
    server.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy());
  }

  private nextId(): number {
    this.state.connectionsEver += 1;
    return this.state.connectionsEver;
  }

  /** False when there are too many connections. */
  private accept(socket: Socket): boolean {
    if (this.sockets.size >= this.state.maxConnections) {
      socket.destroy();
      return false;
    }
    this.sockets.add(socket);
    this.state.connections = this.sockets.size;
    socket.on('close', () => {
      this.sockets.delete(socket);
      this.state.connections = this.sockets.size;
    });
    return true;
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
    const { store, cursors, sessions, snapshots } = this.state;
    cursors.closeIdle(now);
    snapshots.expire(now);
    const forgotten = new Set(sessions.expire(now));
    cursors.closeWhere((cursor) => cursor.sessionKey !== undefined && forgotten.has(cursor.sessionKey));
    removeExpired(store, now);
  }
}

function serverFor({ tls }: WireServerOptions): Server {
  if (!tls) return createServer();
  const required = tls.ca !== undefined;
  return createTlsServer({
    key: tls.key,
    cert: tls.cert,
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    requestCert: required,
    rejectUnauthorized: required,
  });
}

function startListening(server: Server, options: WireServerOptions): Promise<void> {
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

/** 0 for a unix socket. */
function readPort(server: Server): number {
  const address = server.address();
  return address === null || typeof address === 'string' ? 0 : address.port;
}

const formatHost = ({ host }: WireServerOptions): string => (host.includes(':') ? `[${host}]` : host);

function findServerAddress(ports: readonly number[], options: WireServerOptions): WireServerAddress {
  if (options.path !== undefined) {
    return {
      host: options.path,
      port: 0,
      uri: `mongodb://${encodeURIComponent(options.path)}/?directConnection=true`,
    };
  }
  const hosts = ports.map((port) => `${formatHost(options)}:${port}`).join(',');
  const query = ports.length === 1 ? 'directConnection=true' : `replicaSet=${options.replSet ?? ''}`;
  const tls = options.tls ? '&tls=true' : '';
  return { host: options.host, port: ports[0] ?? 0, uri: `mongodb://${hosts}/?${query}${tls}` };
}
