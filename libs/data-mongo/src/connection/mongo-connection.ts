import type {
  ClientSession,
  ChangeStream,
  ChangeStreamOptions,
  Collection,
  Db,
  Document,
  MongoClient,
} from 'mongodb';
import { type OperationContext, StoreError, type StoreErrorCode } from '#data';
import { nameTenantDatabase, TENANT_PLACE, type TenantDatabases } from '#policy';
import { asStoreOperation, isDriverError, toStoreError } from '../errors.js';
import type { FastReads } from '../fast-reads/fast-reads.js';
import {
  ApplicationClient,
  type ApplicationClientOptions,
  type DriverClient,
  OwnClient,
  type OwnClientOptions,
  RETIREMENT_MS,
} from './driver-client.js';

interface DatabaseOptions {
  /** Milliseconds an operation waits for a reachable server, or for a free connection. Default 3000. */
  readonly timeout?: number;
  /** Whether no row and no class of it is ever changed. Default false. */
  readonly readOnly?: boolean;
  /** The databases of tenants, in place of one: `forTenant` has each of them. Default: it is one database. */
  readonly tenants?: TenantDatabases | undefined;
}

export interface ApplicationDatabaseOptions extends ApplicationClientOptions, DatabaseOptions {
  readonly database: string;
}

export interface MongoConnectionOptions extends OwnClientOptions, DatabaseOptions {
  /** Database name. Default: the one in the URI. */
  readonly database?: string;
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

/** A write that fails with one of these may have been applied: its answer was lost, or the server had not finished it. */
const AMBIGUOUS_ERRORS = new Set<StoreErrorCode>(['unavailable', 'timeout', 'cancelled']);

/** Milliseconds in which a server that was unreachable must answer a probe. */
const PROBE_MS = 3_000;

/** What a connection shows of its client. Those of one client share it, and the databases beside it. */
interface ConnectionParts {
  readonly client: DriverClient;
  readonly timeout: number;
  readonly readOnly: boolean;
  readonly tenants: TenantDatabases | null;
  readonly database: string | undefined;
  /** The databases beside it, and those that another one has replaced. */
  readonly beside: Map<string, MongoConnection>;
  readonly leaving: Map<MongoConnection, NodeJS.Timeout>;
  /** Of `withTenant`. */
  readonly tenant?: Tenant;
  /** Of `within`: the session of its operations. */
  readonly session?: ClientSession;
  /** Of `within`: the only database that is changed, and whose place it is in. */
  readonly changed?: { readonly place: ClassPlace; readonly connection: MongoConnection };
}

/**
 * One driver client and its pool, shared by all code that uses this database.
 * @throws ConnectionStringError when the URI cannot be parsed
 */
export class MongoConnection {
  private readonly parts: ConnectionParts;
  /** The databases of tenants, those that were used last at the end. */
  private readonly byTenant = new Map<string, MongoConnection>();
  /** The handle of the database at the client that it belongs to. */
  private handle: { readonly client: MongoClient; readonly database: Db } | null = null;

  /** @param further the databases beside this one, where this one is that of a service */
  constructor(
    given: MongoConnectionOptions | ApplicationDatabaseOptions | ConnectionParts,
    further: FurtherConnections = new Map(),
  ) {
    this.parts = 'beside' in given ? given : openParts(given, further);
  }

  /** The servers that its connection string names, as `host:port`. */
  get servers(): readonly string[] {
    const { srvHost, hosts } = this.parts.client.current.options;
    return srvHost === undefined ? hosts.map(String) : [`${srvHost}+srv`];
  }

  /** The databases beside this one. */
  get further(): FurtherConnections {
    return this.parts.beside;
  }

  /**
   * Puts a connection in the place of the one with that name; null: there is none any more. Operations that run at the former one
   * may end. It is closed afterwards.
   */
  replaceFurther(name: string, connection: MongoConnection | null): void {
    const { beside, leaving } = this.parts;
    const former = beside.get(name);
    if (connection) beside.set(name, connection);
    else beside.delete(name);
    if (!former) return;
    const retire = () => {
      leaving.delete(former);
      void former.close().catch(() => undefined);
    };
    leaving.set(former, setTimeout(retire, RETIREMENT_MS).unref());
  }

  /** Why reads are the driver's although `fastReads` was set. Null: they are not, or it was not. */
  get fastReadsProblem(): string | null {
    return this.parts.client.fastReadsProblem;
  }

  /** For the adapter only. Null: every read is the driver's. */
  get fastReads(): FastReads | null {
    const { session, client } = this.parts;
    return session ? null : client.reads;
  }

  /** For the adapter only: the session that its operations belong to. Absent: each belongs to none, or to its own. */
  get session(): ClientSession | undefined {
    return this.parts.session;
  }

  /** For the adapter only: the options of a command of an operation. */
  limits({ maxTimeMS, comment }: Pick<OperationContext, 'maxTimeMS' | 'comment'>) {
    const { session } = this;
    return { maxTimeMS, comment, ...(session && { session }) };
  }

  /** For the adapter only. @throws StoreError `unavailable` after `close` */
  get client(): MongoClient {
    return this.parts.client.open();
  }

  /**
   * For the adapter only: the same connections, of which that to one database is read and changed in a session. Rows of the others are
   * read as they are, and not changed.
   * @param place that of the database. @param tenant whose it is where each has its own
   */
  within(session: ClientSession, place: ClassPlace, tenant?: Tenant): MongoConnection {
    const connection = this.holding(place, tenant).show({ session });
    return this.show({ changed: { place, connection } });
  }

  /**
   * For the adapter only: no driver type crosses a port. @throws StoreError `unavailable` after `close`, `unsupported` where only
   * tenants have databases
   */
  get db(): Db {
    if (this.parts.tenants) throw this.withoutTenant();
    return this.openDatabase();
  }

  /** For the adapter only: what the server says of itself and of the user. */
  ask(command: Document, signal: AbortSignal): Promise<Document> {
    return this.openDatabase().command(command, { signal });
  }

  /** For the adapter only: the changes of the database, or of every one of its servers where each tenant has its own. */
  watch(pipeline: Document[], options: ChangeStreamOptions): ChangeStream {
    const database = this.openDatabase();
    return (this.parts.tenants ? database.client : database).watch(pipeline, options);
  }

  /** Whether each tenant has a database of its own. */
  get isPerTenant(): boolean {
    return this.parts.tenants !== null;
  }

  /** Whether it is the database of that name, or that of some tenant. */
  covers(name: string): boolean {
    const { tenants } = this.parts;
    if (!tenants) return name === this.name;
    const [start = '', end = ''] = tenants.pattern.split(TENANT_PLACE);
    return name.startsWith(start) && name.endsWith(end);
  }

  /**
   * The database of a tenant at the same client, where each has its own; else this.
   * @throws StoreError `unsupported` without a tenant whose database it can be
   */
  forTenant(tenant: Tenant): MongoConnection {
    const { tenants } = this.parts;
    if (!tenants) return this;
    const name = nameTenantDatabase(tenants, tenant);
    if (name === null) throw this.withoutTenant();
    const known = this.byTenant.get(name);
    const connection = known ?? this.show({ tenants: null, database: name });
    if (known) this.byTenant.delete(name);
    this.byTenant.set(name, connection);
    if (this.byTenant.size > MOST_TENANTS) this.byTenant.delete(this.byTenant.keys().next().value as string);
    return connection;
  }

  /** The same connections, where a class without another tenant is that of this one. */
  withTenant(tenant: Tenant): MongoConnection {
    return this.show({ tenant });
  }

  /** The databases of tenants at the client of an application, which is known before they are. */
  withTenants(tenants: TenantDatabases | undefined): MongoConnection {
    return tenants ? this.show({ tenants }) : this;
  }

  private show(changes: Partial<ConnectionParts>): MongoConnection {
    return new MongoConnection({ ...this.parts, ...changes });
  }

  private withoutTenant(): StoreError {
    return new StoreError('unsupported', {
      advice: 'each tenant has a database of its own here, and this is done for none that can have one',
    });
  }

  /** The other databases of the server, without its own. For tests. */
  async listOtherDatabases(): Promise<readonly Db[]> {
    const client = this.parts.client.open();
    const { databases } = await client.db('admin').admin().listDatabases({ nameOnly: true });
    return databases
      .filter(({ name }) => name !== this.name && !['admin', 'config', 'local'].includes(name))
      .map(({ name }) => client.db(name));
  }

  /**
   * The connection to the database that holds a class.
   * @param tenant whose database it is where each has its own
   * @throws StoreError `invalid_query` for a database that this is not, and that none beside it is; as `forTenant`
   */
  holding({ database }: ClassPlace, tenant: Tenant = this.parts.tenant): MongoConnection {
    const held = database === undefined ? this : this.further.get(database)?.forTenant(tenant);
    if (!held) throw new StoreError('invalid_query', { cause: new Error(`no database ${database}`) });
    const { changed } = this.parts;
    if (!changed) return held;
    const isChanged = changed.place.database === database && changed.connection.name === held.name;
    return isChanged ? changed.connection : held;
  }

  /**
   * The same for a change of rows or columns, whoever asks for it.
   * @throws StoreError `unsupported` for a database that is only read, and as `holding`
   */
  openForChanges(place: ClassPlace, tenant?: Tenant): MongoConnection {
    const connection = this.holding(place, tenant);
    const { changed } = this.parts;
    if (changed && connection !== changed.connection)
      throw new StoreError('unsupported', { advice: 'one transaction changes rows of one database' });
    if (!connection.parts.readOnly) return connection;
    throw new StoreError('unsupported', { advice: 'the database of this class is only read' });
  }

  /** The name of the database; where each tenant has its own, with `{tenant}` in it. */
  get name(): string {
    const { tenants, database, client } = this.parts;
    return tenants?.pattern ?? database ?? client.openDatabase(undefined).databaseName;
  }

  get closed(): boolean {
    return this.parts.client.closed;
  }

  /** @param database another database of the same server. Default: the database of the connection */
  collection(name: string, database?: string): Collection<DriverDocument> {
    if (database === undefined) return this.db.collection<DriverDocument>(name);
    const { client } = this.parts;
    client.open();
    return client.openDatabase(database).collection<DriverDocument>(name);
  }

  private openDatabase(): Db {
    const { client, tenants, database } = this.parts;
    const now = client.open();
    if (this.handle?.client !== now)
      this.handle = { client: now, database: client.openDatabase(tenants ? SERVER : database) };
    return this.handle.database;
  }

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
    const { client } = this.parts;
    if (client.suspected) {
      await this.ping(PROBE_MS);
      client.suspected = false;
    }
    try {
      return await this.settleCommand(command, maxTimeMS);
    } catch (error) {
      const storeError = toStoreError(error);
      if (storeError.code === 'unavailable') client.suspected = true;
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
    const limit = 2 * (maxTimeMS + 2 * this.parts.timeout) + 1000;
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

  /** Closes the client, and those of the databases beside it. May be called more than once. */
  async close(): Promise<void> {
    const { client, beside, leaving } = this.parts;
    const left = [...leaving.keys()];
    for (const timer of leaving.values()) clearTimeout(timer);
    leaving.clear();
    await Promise.all([client, ...beside.values(), ...left].map((one) => one.close()));
  }
}

function openParts(
  options: MongoConnectionOptions | ApplicationDatabaseOptions,
  further: FurtherConnections,
): ConnectionParts {
  const { timeout = 3000, readOnly = false, tenants = null, database } = options;
  const client = 'client' in options ? new ApplicationClient(options) : new OwnClient(options);
  return { client, timeout, readOnly, tenants, database, beside: new Map(further), leaving: new Map() };
}
