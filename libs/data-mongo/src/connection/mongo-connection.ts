import {
  type ClientSession,
  type ChangeStream,
  type ChangeStreamOptions,
  type Collection,
  type Db,
  type DbOptions,
  type Document,
  type MongoClient,
  ReadConcern,
} from 'mongodb';
import { type OperationContext, StoreError, type StoreErrorCode } from '#data';
import { nameTenantDatabase, TENANT_PLACE, type TenantDatabases } from '#policy';
import { asStoreOperation, isDriverError, toStoreError } from '../errors.js';
import { FastReads, fastReadsProblem } from '../fast-reads/fast-reads.js';
import { createClient } from './connection-string.js';

/** A client that the application opened, and closes. */
export interface ApplicationClientOptions {
  /** The client that the application has now: a connection that is closed and opened again has another. */
  readonly client: () => MongoClient;
  readonly database: string;
  /** Milliseconds a write waits for a reachable server. Default 3000. */
  readonly timeout?: number;
  /** As that of `MongoConnectionOptions`. */
  readonly readOnly?: boolean;
  /** As that of `MongoConnectionOptions`. */
  readonly tenants?: TenantDatabases | undefined;
}

export interface MongoConnectionOptions {
  /** `mongodb://` or `mongodb+srv://`. */
  readonly uri: string;
  /** Database name. Default: the one in the URI. */
  readonly database?: string;
  /** Connections kept at most; as many operations run at a time. Default 100. */
  readonly maxPoolSize?: number;
  /** Milliseconds an operation waits for a reachable server, or for a free connection. Default 3000. */
  readonly timeout?: number;
  /**
   * Reads use connections beside the pool, at most `maxPoolSize` of them, where the connection string permits it (`fastReadsProblem`).
   * Default false.
   */
  readonly fastReads?: boolean;
  /** Whether no row and no class of it is ever changed. Default false. */
  readonly readOnly?: boolean;
  /** The databases of tenants, in place of one: `forTenant` has each of them. Default: it is one database. */
  readonly tenants?: TenantDatabases | undefined;
}

/** The place of a class: the name of its database, undefined for that of the service. */
interface ClassPlace {
  readonly database?: string | undefined;
}

type Tenant = string | number | null | undefined;

/** Databases of tenants that are kept open: handles of the one client. */
const MOST_TENANTS = 1_000;

/** Where commands go that concern no database. */
const SERVER = 'admin';

/** The databases beside the one of a service, by name. */
export type FurtherConnections = ReadonlyMap<string, MongoConnection>;

/** Parse ids are text, so documents here are typed no further than that. */
export interface DriverDocument extends Document {
  _id: string;
}

/**
 * Whatever an application set at its client: values are read as they are stored, from the primary, and written as they are
 * given. No value that another program stored fails a read (`toDocument` says which would).
 */
const EXACT_READS: DbOptions = {
  readPreference: 'primary',
  readConcern: new ReadConcern('local'),
  raw: false,
  promoteLongs: true,
  promoteValues: true,
  promoteBuffers: false,
  useBigInt64: false,
  bsonRegExp: true,
  ignoreUndefined: false,
  serializeFunctions: false,
  enableUtf8Validation: false,
};

/** A write without an acknowledgement could fail unnoticed. */
const ACKNOWLEDGED_WRITES: DbOptions = { writeConcern: { w: 'majority' } };

/** A write that fails with one of these may have been applied: its answer was lost, or the server had not finished it. */
const AMBIGUOUS_ERRORS = new Set<StoreErrorCode>(['unavailable', 'timeout', 'cancelled']);

/** Milliseconds in which a server that was unreachable must answer a probe. */
const PROBE_MS = 3_000;

/** Milliseconds between two checks of a server by the driver: the driver's default. */
const HEARTBEAT_MS = 10_000;

/** Milliseconds in which operations of a replaced client must end. */
const RETIREMENT_MS = 60_000;

/**
 * One driver client and its pool, shared by all code that uses this database. It connects at first use. A client whose check
 * of a server never ends is replaced: the driver (7.9) waits forever when the server closed the connection of the check at
 * the moment the check was sent, and would treat the server as unreachable until the process ends. So is a client that found no
 * server at its first use: the driver closes what it began to open, and refuses every later operation at once. The client of an
 * application is neither replaced nor closed.
 * @throws ConnectionStringError when the URI cannot be parsed
 */
export class MongoConnection {
  private client: MongoClient;
  private database: Db;
  private reads: FastReads | null = null;
  private ended = false;
  private readonly timeout: number;
  /** Per server address, when the running check of that server must have ended. */
  private readonly checks = new Map<string, NodeJS.Timeout>();
  private readonly retired = new Map<MongoClient, NodeJS.Timeout>();
  private readonly leaving = new Map<MongoConnection, NodeJS.Timeout>();
  /** A write failed because no server was reachable, and no operation has been answered since. */
  private suspected = false;
  /** The application closed its client. The driver would open it again, and keep the process alive. */
  private closedOutside = false;
  private readonly tenants: TenantDatabases | null;
  /** The databases of tenants, those that were used last at the end. */
  private readonly byTenant = new Map<string, MongoConnection>();
  /** Of `within`: the only database that is changed. */
  private readonly changed?: MongoConnection;
  /** Of `withTenant`. */
  private readonly tenant?: Tenant;

  private readonly beside: Map<string, MongoConnection>;

  /** @param further the databases beside this one, where this one is that of a service */
  constructor(
    private readonly options: MongoConnectionOptions | ApplicationClientOptions,
    further: FurtherConnections = new Map(),
  ) {
    this.beside = new Map(further);
    this.timeout = options.timeout ?? 3000;
    this.tenants = options.tenants ?? null;
    if ('client' in options) {
      this.client = options.client();
      this.database = this.joinClient(this.client, this.tenants ? SERVER : options.database);
    } else {
      this.client = this.openClient(options);
      this.database = this.client.db(this.tenants ? SERVER : options.database);
      this.reads = this.openFastReads(options);
    }
  }

  /** The servers that its connection string names, as `host:port`. */
  get servers(): readonly string[] {
    const { srvHost, hosts } = this.client.options;
    return srvHost === undefined ? hosts.map(String) : [`${srvHost}+srv`];
  }

  /** The databases beside this one. */
  get further(): FurtherConnections {
    return this.beside;
  }

  /**
   * Puts a connection in the place of the one with that name; null: there is none any more. Operations that run at the former one
   * may end. It is closed afterwards.
   */
  replaceFurther(name: string, connection: MongoConnection | null): void {
    const former = this.beside.get(name);
    if (connection) this.beside.set(name, connection);
    else this.beside.delete(name);
    if (!former) return;
    const retire = () => {
      this.leaving.delete(former);
      void former.close().catch(() => undefined);
    };
    this.leaving.set(former, setTimeout(retire, RETIREMENT_MS).unref());
  }

  /** Why reads are the driver's although `fastReads` was set. Null: they are not, or it was not. */
  get fastReadsProblem(): string | null {
    const wanted = !('client' in this.options) && this.options.fastReads === true;
    return wanted ? fastReadsProblem(this.client) : null;
  }

  /** For the adapter only. Null: every read is the driver's. */
  get fastReads(): FastReads | null {
    return this.reads;
  }

  /** For the adapter only: the session that its operations belong to. Absent: each belongs to none, or to its own. */
  readonly session?: ClientSession;

  /** For the adapter only: a session, which the caller ends. */
  startSession(): ClientSession {
    this.assertOpen();
    return this.client.startSession({ causalConsistency: false });
  }

  /**
   * For the adapter only: the same connections, of which that to one database is read and changed in a session. Rows of the others are
   * read as they are, and not changed.
   * @param place that of the database. @param tenant whose it is where each has its own
   */
  within(session: ClientSession, place: ClassPlace, tenant?: Tenant): MongoConnection {
    const home = this.holding(place, tenant);
    const bound = Object.create(home, {
      session: { value: session },
      reads: { value: null },
    }) as MongoConnection;
    const opened = (asked: ClassPlace, its?: Tenant): MongoConnection => {
      const held = this.holding(asked, its);
      return asked.database === place.database && held.name === home.name ? bound : held;
    };
    return Object.create(this, {
      holding: { value: opened },
      changed: { value: bound },
    }) as MongoConnection;
  }

  private openFastReads({ fastReads = false }: MongoConnectionOptions): FastReads | null {
    return fastReads && fastReadsProblem(this.client) === null ? new FastReads(this.client) : null;
  }

  /**
   * For the adapter only: no driver type crosses a port. @throws StoreError `unavailable` after `close`, `unsupported` where only
   * tenants have databases
   */
  get db(): Db {
    if (this.tenants) throw this.withoutTenant();
    this.assertOpen();
    return this.database;
  }

  /** For the adapter only: what the server says of itself and of the user. */
  ask(command: Document, signal: AbortSignal): Promise<Document> {
    this.assertOpen();
    return this.database.command(command, { signal });
  }

  /** For the adapter only: the changes of the database, or of every one of its servers where each tenant has its own. */
  watch(pipeline: Document[], options: ChangeStreamOptions): ChangeStream {
    this.assertOpen();
    return (this.tenants ? this.client : this.database).watch(pipeline, options);
  }

  /** Whether each tenant has a database of its own. */
  get isPerTenant(): boolean {
    return this.tenants !== null;
  }

  /** Whether it is the database of that name, or that of some tenant. */
  covers(name: string): boolean {
    if (!this.tenants) return name === this.name;
    const [start = '', end = ''] = this.tenants.pattern.split(TENANT_PLACE);
    return name.startsWith(start) && name.endsWith(end);
  }

  /**
   * The database of a tenant at the same client, where each has its own; else this.
   * @throws StoreError `unsupported` without a tenant whose database it can be
   */
  forTenant(tenant: Tenant): MongoConnection {
    if (!this.tenants) return this;
    const name = nameTenantDatabase(this.tenants, tenant);
    if (name === null) throw this.withoutTenant();
    const known = this.byTenant.get(name);
    const connection = known ?? this.openTenant(name);
    if (known) this.byTenant.delete(name);
    this.byTenant.set(name, connection);
    if (this.byTenant.size > MOST_TENANTS) this.byTenant.delete(this.byTenant.keys().next().value as string);
    return connection;
  }

  /** The same connections, where a class without another tenant is that of this one. */
  withTenant(tenant: Tenant): MongoConnection {
    return Object.create(this, { tenant: { value: tenant } }) as MongoConnection;
  }

  /** The databases of tenants at the client of an application, which is known before they are. */
  withTenants(tenants: TenantDatabases | undefined): MongoConnection {
    if (!tenants) return this;
    void this.close();
    return new MongoConnection({ ...this.options, tenants });
  }

  private openTenant(name: string): MongoConnection {
    const opened = (): Db => {
      const { client } = this;
      return 'client' in this.options ? openDatabase(client, name) : client.db(name);
    };
    return Object.create(this, {
      tenants: { value: null },
      assertOpen: { value: () => this.assertOpen() },
      database: { get: opened },
    }) as MongoConnection;
  }

  private withoutTenant(): StoreError {
    return new StoreError('unsupported', {
      advice: 'each tenant has a database of its own here, and this is done for none that can have one',
    });
  }

  /** The other databases of the server, without its own. For tests. */
  async listOtherDatabases(): Promise<readonly Db[]> {
    const { databases } = await this.client.db('admin').admin().listDatabases({ nameOnly: true });
    return databases
      .filter(({ name }) => name !== this.name && !['admin', 'config', 'local'].includes(name))
      .map(({ name }) => this.client.db(name));
  }

  /**
   * The connection to the database that holds a class.
   * @param tenant whose database it is where each has its own
   * @throws StoreError `invalid_query` for a database that this is not, and that none beside it is; as `forTenant`
   */
  holding({ database }: ClassPlace, tenant: Tenant = this.tenant): MongoConnection {
    if (database === undefined) return this;
    const connection = this.further.get(database);
    if (connection) return connection.forTenant(tenant);
    throw new StoreError('invalid_query', { cause: new Error(`no database ${database}`) });
  }

  /**
   * The same for a change of rows or columns, whoever asks for it.
   * @throws StoreError `unsupported` for a database that is only read, and as `holding`
   */
  openForChanges(place: ClassPlace, tenant?: Tenant): MongoConnection {
    const connection = this.holding(place, tenant);
    if (this.changed && connection !== this.changed)
      throw new StoreError('unsupported', { advice: 'one transaction changes rows of one database' });
    if (!connection.options.readOnly) return connection;
    throw new StoreError('unsupported', { advice: 'the database of this class is only read' });
  }

  /** The name of the database; where each tenant has its own, with `{tenant}` in it. */
  get name(): string {
    return this.tenants?.pattern ?? this.database.databaseName;
  }

  get closed(): boolean {
    return this.ended;
  }

  /** @param database another database of the same server. Default: the database of the connection */
  collection(name: string, database?: string): Collection<DriverDocument> {
    if (database === undefined) return this.db.collection<DriverDocument>(name);
    this.assertOpen();
    const other = 'client' in this.options ? openDatabase(this.client, database) : this.client.db(database);
    return other.collection<DriverDocument>(name);
  }

  private assertOpen(): void {
    // The driver would reconnect by itself and keep the process alive.
    if (this.ended) throw new StoreError('unavailable');
    if (!('client' in this.options)) return;
    const client = this.options.client();
    if (client !== this.client) {
      this.leave(this.client);
      this.client = client;
      this.database = this.joinClient(client, this.tenants ? SERVER : this.options.database);
    }
    if (this.closedOutside) throw new StoreError('unavailable');
  }

  private joinClient(client: MongoClient, database: string): Db {
    this.closedOutside = false;
    client.on('topologyClosed', this.noteClosed).on('topologyOpening', this.noteOpened);
    return openDatabase(client, database);
  }

  private leave(client: MongoClient): void {
    client.off('topologyClosed', this.noteClosed).off('topologyOpening', this.noteOpened);
  }

  private readonly noteClosed = (): void => void (this.closedOutside = true);
  private readonly noteOpened = (): void => void (this.closedOutside = false);

  /** @throws StoreError `unavailable` when the database did not answer in time */
  async ping(timeoutMs: number): Promise<void> {
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      await asStoreOperation(undefined, async () => this.ask({ ping: 1, maxTimeMS: timeoutMs }, signal));
    } catch (error) {
      throw signal.aborted ? new StoreError('unavailable', { cause: error }) : error;
    }
  }

  /**
   * Runs a command that writes. A server that was unreachable is probed first, so that a write that is not sent is known not
   * to have been applied.
   * @throws StoreError with `outcome: 'unknown'` when the write was sent and its outcome is not known
   */
  async sendWrite<T>(
    { maxTimeMS }: Pick<OperationContext, 'maxTimeMS'>,
    command: () => Promise<T>,
  ): Promise<T> {
    if (this.suspected) {
      await this.ping(PROBE_MS);
      this.suspected = false;
    }
    try {
      return await this.settleCommand(command, maxTimeMS);
    } catch (error) {
      const storeError = toStoreError(error);
      if (storeError.code === 'unavailable') this.suspected = true;
      const unconfirmed = isDriverError(error, 'MongoWriteConcernError');
      if (!unconfirmed && !AMBIGUOUS_ERRORS.has(storeError.code)) throw storeError;
      const { code, cause, advice } = storeError;
      throw new StoreError(code, { cause, outcome: 'unknown', ...(advice !== undefined && { advice }) });
    }
  }

  /**
   * The driver may wait forever on a connection that closed during a write, and a write has no signal that could abort it.
   */
  private async settleCommand<T>(command: () => Promise<T>, maxTimeMS: number): Promise<T> {
    // The driver tries twice, and each time waits for a server and for a connection.
    const limit = 2 * (maxTimeMS + 2 * this.timeout) + 1000;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new StoreError('timeout')), limit);
    });
    try {
      return await Promise.race([command(), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends running operations and frees the pools, unless both are the application's. May be called more than once. */
  async close(): Promise<void> {
    this.ended = true;
    const leaving = [...this.leaving];
    this.leaving.clear();
    for (const [, timer] of leaving) clearTimeout(timer);
    await Promise.all([...this.beside.values(), ...leaving.map(([one]) => one)].map((one) => one.close()));
    if ('client' in this.options) {
      this.leave(this.client);
      return;
    }
    this.forgetChecks();
    this.reads?.close();
    const retired = [...this.retired.keys()];
    for (const timer of this.retired.values()) clearTimeout(timer);
    this.retired.clear();
    await Promise.all([this.client, ...retired].map((client) => client.close()));
  }

  private openClient(options: MongoConnectionOptions): MongoClient {
    const { timeout } = this;
    const client = createClient(options.uri, {
      appName: 'parley',
      maxPoolSize: options.maxPoolSize ?? 100,
      serverSelectionTimeoutMS: timeout,
      connectTimeoutMS: timeout,
      waitQueueTimeoutMS: timeout,
      heartbeatFrequencyMS: HEARTBEAT_MS,
    });
    const handleEnd = (address: string) => {
      if (client === this.client) this.checkEnded(address);
    };
    client.on('serverHeartbeatStarted', ({ connectionId, awaited }) => {
      if (client !== this.client || this.ended) return;
      // Connecting and the answer may each take the server timeout; an awaited check is answered within the check interval.
      this.checkStarted(connectionId, options, 2 * timeout + (awaited ? HEARTBEAT_MS : 0) + 1000);
    });
    client.on('serverHeartbeatSucceeded', ({ connectionId }) => handleEnd(connectionId));
    client.on('serverHeartbeatFailed', ({ connectionId }) => handleEnd(connectionId));
    client.on('serverClosed', ({ address }) => handleEnd(address));
    client.on('topologyClosed', () => {
      if (client === this.client && !this.ended) this.replaceClient(options);
    });
    return client;
  }

  private checkStarted(address: string, options: MongoConnectionOptions, limit: number): void {
    this.checkEnded(address);
    this.checks.set(address, setTimeout(() => this.replaceClient(options), limit).unref());
  }

  private checkEnded(address: string): void {
    clearTimeout(this.checks.get(address));
    this.checks.delete(address);
  }

  private forgetChecks(): void {
    for (const timer of this.checks.values()) clearTimeout(timer);
    this.checks.clear();
  }

  private replaceClient(options: MongoConnectionOptions): void {
    const { client } = this;
    this.forgetChecks();
    this.client = this.openClient(options);
    this.database = this.client.db(this.tenants ? SERVER : options.database);
    this.reads?.close();
    this.reads = this.openFastReads(options);
    const retire = () => {
      this.retired.delete(client);
      void client.close().catch(() => undefined);
    };
    this.retired.set(client, setTimeout(retire, RETIREMENT_MS).unref());
  }
}

/** A database of an application's client, whose options do not change what is read and written here. */
function openDatabase(client: MongoClient, name: string): Db {
  return client.db(name, {
    ...EXACT_READS,
    ...(client.options.writeConcern?.w === 0 && ACKNOWLEDGED_WRITES),
  });
}
