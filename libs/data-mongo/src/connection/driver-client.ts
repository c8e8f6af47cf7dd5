import { type Db, type DbOptions, type MongoClient, ReadConcern } from 'mongodb';
import { StoreError } from '#data';
import { FastReads, fastReadsProblem } from '../fast-reads/fast-reads.js';
import { createClient } from './connection-string.js';

/** A client that the application opened, and closes. */
export interface ApplicationClientOptions {
  /** The client that the application has now: a connection that is closed and opened again has another. */
  readonly client: () => MongoClient;
}

export interface OwnClientOptions {
  /** `mongodb://` or `mongodb+srv://`. */
  readonly uri: string;
  /** Connections kept at most; as many operations run at a time. Default 100. */
  readonly maxPoolSize?: number;
  /** Milliseconds an operation waits for a reachable server, or for a free connection. Default 3000. */
  readonly timeout?: number;
  /**
   * Reads use connections beside the pool, at most `maxPoolSize` of them, where the connection string permits it (`fastReadsProblem`).
   * Default false.
   */
  readonly fastReads?: boolean;
}

/** The client of the driver that a connection has now, and what is known of its servers. */
export abstract class DriverClient {
  /** A write failed because no server was reachable, and no operation has been answered since. */
  suspected = false;
  protected ended = false;

  /** Closed or not. */
  abstract readonly current: MongoClient;
  /** The connections for reads beside its pool. Null: every read is the driver's. */
  abstract readonly reads: FastReads | null;
  /** Why reads are the driver's although `fastReads` was set. Null: they are not, or it was not. */
  abstract readonly fastReadsProblem: string | null;

  abstract openDatabase(name: string | undefined): Db;

  /** Ends running operations and frees the pools, unless both are the application's. May be called more than once. */
  abstract close(): Promise<void>;

  get closed(): boolean {
    return this.ended;
  }

  /** @throws StoreError `unavailable` after it was closed: the driver would connect again, and keep the process alive */
  open(): MongoClient {
    if (this.ended) throw new StoreError('unavailable');
    return this.current;
  }
}

/** Milliseconds between two checks of a server by the driver: the driver's default. */
const HEARTBEAT_MS = 10_000;

/** Milliseconds in which operations of what was replaced must end. */
export const RETIREMENT_MS = 60_000;

/**
 * A client of Parley's own. It connects at first use. One whose check of a server never ends is replaced: the driver (7.9) waits forever
 * when the server closed the connection of the check at the moment the check was sent, and would treat the server as unreachable until the
 * process ends. So is one that found no server at its first use: the driver closes what it began to open, and refuses every later
 * operation at once.
 * @throws ConnectionStringError when the URI cannot be parsed
 */
export class OwnClient extends DriverClient {
  current: MongoClient;
  reads: FastReads | null;
  /** Per server address, when the running check of that server must have ended. */
  private readonly checks = new Map<string, NodeJS.Timeout>();
  private readonly retired = new Map<MongoClient, NodeJS.Timeout>();

  constructor(private readonly options: OwnClientOptions) {
    super();
    this.current = this.connect();
    this.reads = this.openFastReads();
  }

  get fastReadsProblem(): string | null {
    return this.options.fastReads === true ? fastReadsProblem(this.current) : null;
  }

  openDatabase(name: string | undefined): Db {
    return this.current.db(name);
  }

  async close(): Promise<void> {
    this.ended = true;
    this.forgetChecks();
    this.reads?.close();
    const retired = [...this.retired.keys()];
    for (const timer of this.retired.values()) clearTimeout(timer);
    this.retired.clear();
    await Promise.all([this.current, ...retired].map((client) => client.close()));
  }

  private openFastReads(): FastReads | null {
    const { fastReads = false } = this.options;
    return fastReads && fastReadsProblem(this.current) === null ? new FastReads(this.current) : null;
  }

  private connect(): MongoClient {
    const { uri, maxPoolSize = 100, timeout = 3000 } = this.options;
    const client = createClient(uri, {
      appName: 'parley',
      maxPoolSize,
      serverSelectionTimeoutMS: timeout,
      connectTimeoutMS: timeout,
      waitQueueTimeoutMS: timeout,
      heartbeatFrequencyMS: HEARTBEAT_MS,
    });
    const handleEnd = (address: string) => {
      if (client === this.current) this.endCheck(address);
    };
    client.on('serverHeartbeatStarted', ({ connectionId, awaited }) => {
      if (client !== this.current || this.ended) return;
      // Connecting and the answer may each take the server timeout; an awaited check is answered within the check interval.
      this.beginCheck(connectionId, 2 * timeout + (awaited ? HEARTBEAT_MS : 0) + 1000);
    });
    client.on('serverHeartbeatSucceeded', ({ connectionId }) => handleEnd(connectionId));
    client.on('serverHeartbeatFailed', ({ connectionId }) => handleEnd(connectionId));
    client.on('serverClosed', ({ address }) => handleEnd(address));
    client.on('topologyClosed', () => {
      if (client === this.current && !this.ended) this.replace();
    });
    return client;
  }

  private beginCheck(address: string, limit: number): void {
    this.endCheck(address);
    this.checks.set(address, setTimeout(() => this.replace(), limit).unref());
  }

  private endCheck(address: string): void {
    clearTimeout(this.checks.get(address));
    this.checks.delete(address);
  }

  private forgetChecks(): void {
    for (const timer of this.checks.values()) clearTimeout(timer);
    this.checks.clear();
  }

  private replace(): void {
    const client = this.current;
    this.forgetChecks();
    this.current = this.connect();
    this.reads?.close();
    this.reads = this.openFastReads();
    const retire = () => {
      this.retired.delete(client);
      void client.close().catch(() => undefined);
    };
    this.retired.set(client, setTimeout(retire, RETIREMENT_MS).unref());
  }
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

/** The client of an application, which is neither replaced nor closed. */
export class ApplicationClient extends DriverClient {
  readonly reads = null;
  readonly fastReadsProblem = null;
  private joined: MongoClient;
  /** The application closed its client. The driver would open it again, and keep the process alive. */
  private closedOutside = false;

  constructor(private readonly options: ApplicationClientOptions) {
    super();
    this.joined = this.join(options.client());
  }

  get current(): MongoClient {
    return this.joined;
  }

  override open(): MongoClient {
    super.open();
    const client = this.options.client();
    if (client !== this.joined) {
      this.leave();
      this.joined = this.join(client);
    }
    if (this.closedOutside) throw new StoreError('unavailable');
    return client;
  }

  openDatabase(name: string | undefined): Db {
    const { joined } = this;
    return joined.db(name, {
      ...EXACT_READS,
      ...(joined.options.writeConcern?.w === 0 && ACKNOWLEDGED_WRITES),
    });
  }

  async close(): Promise<void> {
    this.ended = true;
    this.leave();
  }

  private join(client: MongoClient): MongoClient {
    this.closedOutside = false;
    return client.on('topologyClosed', this.noteClosed).on('topologyOpening', this.noteOpened);
  }

  private leave(): void {
    this.joined.off('topologyClosed', this.noteClosed).off('topologyOpening', this.noteOpened);
  }

  private readonly noteClosed = (): void => void (this.closedOutside = true);
  private readonly noteOpened = (): void => void (this.closedOutside = false);
}
