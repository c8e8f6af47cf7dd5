import { type Collection, type Db, type Document, MongoClient } from 'mongodb';
import { StoreError } from '#data';
import { asStoreOperation } from '../errors.js';

export interface MongoConnectionOptions {
  /** `mongodb://` or `mongodb+srv://`. */
  readonly uri: string;
  /** Database name. Default: the one in the URI. */
  readonly database?: string;
  /** Connections kept at most; as many operations run at a time. Default 100. */
  readonly maxPoolSize?: number;
  /** Milliseconds an operation waits for a reachable server, or for a free connection. Default 3000. */
  readonly patience?: number;
}

/** Parse ids are text, so documents here are typed no further than that. */
export interface StoredDocument extends Document {
  _id: string;
}

/**
 * One driver client and its pool, shared by everything that talks to this database. Connects at first use.
 * @throws TypeError when the URI cannot be read
 */
export class MongoConnection {
  private readonly client: MongoClient;
  private readonly database: Db;
  private ended = false;

  constructor(options: MongoConnectionOptions) {
    const patience = options.patience ?? 3000;
    this.client = clientFor(options.uri, {
      appName: 'parley',
      maxPoolSize: options.maxPoolSize ?? 100,
      serverSelectionTimeoutMS: patience,
      connectTimeoutMS: patience,
      waitQueueTimeoutMS: patience,
    });
    this.database = this.client.db(options.database);
  }

  /** For the adapter alone: no driver type crosses a port. @throws StoreError `unavailable` after `close` */
  get db(): Db {
    // The driver would connect again by itself, and keep the process alive.
    if (this.ended) throw new StoreError('unavailable');
    return this.database;
  }

  get closed(): boolean {
    return this.ended;
  }

  /** @param database another one of the same server. Default: that of the connection */
  collection(name: string, database?: string): Collection<StoredDocument> {
    if (database === undefined) return this.db.collection<StoredDocument>(name);
    if (this.ended) throw new StoreError('unavailable');
    return this.client.db(database).collection<StoredDocument>(name);
  }

  /** @throws StoreError `unavailable` when the database did not answer in time */
  async ping(timeoutMs: number): Promise<void> {
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      await asStoreOperation(undefined, () => this.db.command({ ping: 1, maxTimeMS: timeoutMs }, { signal }));
    } catch (error) {
      throw signal.aborted ? new StoreError('unavailable', { cause: error }) : error;
    }
  }

  /** Ends running operations and frees the pool. May be called more than once. */
  async close(): Promise<void> {
    this.ended = true;
    await this.client.close();
  }
}

/** The driver quotes the URI in its complaints, and a URI may hold a password. */
function clientFor(uri: string, options: ConstructorParameters<typeof MongoClient>[1]): MongoClient {
  try {
    return new MongoClient(uri, options);
  } catch {
    throw new TypeError('database.uri: not a MongoDB connection string');
  }
}
