import { randomUUID } from 'node:crypto';
import {
  type ClientSession,
  type Collection,
  type Document,
  type InsertOneOptions,
  type MongoClient,
  type MongoClientBulkWriteError,
  type TransactionOptions,
} from 'mongodb';
import {
  type BoundStores,
  type OperationContext,
  type ReadStore,
  type WrittenRow,
  RowTransactions,
  type SchemaCatalogue,
  isOutcomeUnknown,
  StoreError,
  type StoreErrorCode,
  RowTransaction,
  type WriteStore,
} from '#data';
import { inspectMongo } from '../connection/inspect-mongo.js';
import type { DriverDocument, MongoConnection } from '../connection/mongo-connection.js';
import { asStoreOperation, isDriverError, isServerError, toStoreError } from '../errors.js';
import { MongoRecordReader } from '../read/mongo-record-reader.js';
import { type InsertDocument, type KeepChange, MongoRecordWriter } from '../write/mongo-record-writer.js';
import { MongoRowImages, toImage } from './mongo-row-images.js';

/** A database that holds rows. */
export interface RowPlace {
  /** Its name; undefined: the first one. */
  readonly database: string | undefined;
  /** Whose it is where each tenant has its own. */
  readonly tenant: OperationContext['tenant'];
}

/** A transaction of the driver. What depends on its outcome is done afterwards. */
export class MongoTransaction extends RowTransaction {
  /** Once it is committed. */
  readonly committed: (() => Promise<void>)[] = [];
  /** Once nothing of it is applied. The same work may follow in another one. */
  readonly aborted: (() => Promise<void>)[] = [];
  /** The server takes no command that inserts into several collections: without it the same work succeeds. */
  lacksBulkWrites = false;
  private readonly held: HeldInsert[] = [];

  /**
   * @param run identifies the work, whose transaction is another one when it runs again
   * @param failed done once the work is given up, and nothing of it was applied
   * @param client that inserts into several collections in one command; null: the server does not
   */
  constructor(
    readonly session: ClientSession,
    readonly place: RowPlace,
    readonly run: string,
    readonly failed: (() => Promise<void>)[],
    private readonly client: MongoClient | null,
  ) {
    super();
  }

  /** Inserts a document when the next one is inserted, with it, or at the end. */
  readonly hold: InsertDocument = async (collection, document, options) => {
    if (!this.client) await collection.insertOne(document, options);
    else this.held.push({ collection, document, options });
  };

  /** Inserts a document, and with it those that were held. */
  async insert(...[collection, document, options]: Parameters<InsertDocument>): Promise<void> {
    const inserts = [...this.held.splice(0), { collection, document, options }];
    if (!this.client || inserts.length === 1) return void (await collection.insertOne(document, options));
    try {
      await insertTogether(this.client, inserts);
    } catch (error) {
      this.lacksBulkWrites = isServerError(error) && NOT_SUPPORTED.has(Number(error.code));
      throw error;
    }
  }

  async insertHeld(): Promise<void> {
    for (const { collection, document, options } of this.held.splice(0))
      await collection.insertOne(document, options);
  }
}

interface HeldInsert {
  readonly collection: Collection<DriverDocument>;
  readonly document: DriverDocument;
  readonly options: InsertOneOptions;
}

/** @throws MongoServerError with the code of the insert that failed */
async function insertTogether(client: MongoClient, inserts: readonly HeldInsert[]): Promise<void> {
  const models = inserts.map(({ collection: { namespace }, document }) => ({
    name: 'insertOne' as const,
    namespace,
    document: document as Document,
  }));
  try {
    await client.bulkWrite(models, inserts[0]?.options);
  } catch (error) {
    const { writeErrors, cause } = error as Partial<MongoClientBulkWriteError>;
    const [failed] = writeErrors?.values() ?? [];
    if (failed) throw Object.assign(error as Error, { code: failed.code });
    throw isServerError(cause) ? cause : error;
  }
}

/** None of it fails what was done. */
const settle = async (steps: readonly (() => Promise<void>)[]): Promise<void> => {
  for (const step of steps) await step().catch(() => undefined);
};

/** Attempts at a transaction while other writers change its rows. */
const CONTENDED_TRIES = 5;
/** Attempts to learn whether a transaction was committed. */
const COMMIT_TRIES = 5;
/** Milliseconds that finding out about the server may take. */
const INSPECT_MS = 3_000;

/** The first version of MongoDB with the command `bulkWrite`. */
const BULK_WRITES_SINCE = 8;
/** `CommandNotFound`, and `CommandNotSupported`, which a server says while its data is still of an older version. */
const NOT_SUPPORTED: ReadonlySet<number> = new Set([59, 115]);

const OPTIONS: TransactionOptions = {
  readPreference: 'primary',
  readConcern: { level: 'snapshot' },
  writeConcern: { w: 'majority' },
};

/** The driver encrypts no bulk write, and sends none without an acknowledgement. */
const sendsBulkWrites = ({ options: { autoEncryption, writeConcern } }: MongoClient): boolean =>
  !autoEncryption && writeConcern?.w !== 0;

/** Transactions of MongoDB, which replica sets and sharded clusters have. */
export class MongoRowTransactions extends RowTransactions {
  readonly images: MongoRowImages;
  /** By database: whether its server inserts into several collections in one command. */
  private readonly takesBulkWrites = new Map<string | undefined, boolean>();

  /** @param wrap the writes of a transaction, as other writes are wrapped */
  constructor(
    private readonly connection: MongoConnection,
    private readonly catalogue: SchemaCatalogue,
    private readonly wrap: (writes: WriteStore) => WriteStore = (writes) => writes,
  ) {
    super();
    this.images = new MongoRowImages(connection, catalogue);
  }

  async findObstacle(className: string, operation: OperationContext): Promise<string | null> {
    const { database, tenant } = await this.findPlace(className, operation);
    const { topology, version } = await inspectMongo(
      this.connection.holding({ database }, tenant),
      INSPECT_MS,
    );
    if (!this.takesBulkWrites.has(database))
      this.takesBulkWrites.set(database, Number.parseInt(version) >= BULK_WRITES_SINCE);
    return topology === 'standalone'
      ? 'the database is a standalone server, which has no transactions: make it a replica set (one member is enough)'
      : null;
  }

  async run<T>(
    className: string,
    operation: OperationContext,
    work: (stores: BoundStores) => Promise<T>,
  ): Promise<T> {
    const place = await this.findPlace(className, operation);
    const { client } = this.connection.holding(place, place.tenant);
    const session = client.startSession({ causalConsistency: false });
    const run = randomUUID();
    const failed: (() => Promise<void>)[] = [];
    try {
      for (let tries = 1; ; tries += 1) {
        const bulkClient =
          this.takesBulkWrites.get(place.database) && sendsBulkWrites(client) ? client : null;
        const transaction = new MongoTransaction(session, place, run, failed, bulkClient);
        const attempt = new Attempt(transaction, this.connection, this.catalogue, this.wrap);
        try {
          const result = await attempt.run(operation, work);
          await settle(transaction.committed);
          return result;
        } catch (error) {
          if (transaction.lacksBulkWrites) this.takesBulkWrites.set(place.database, false);
          const isPassing = attempt.isContended || transaction.lacksBulkWrites;
          if (!isPassing || tries >= CONTENDED_TRIES) {
            if (!isOutcomeUnknown(error)) await settle(failed);
            throw error;
          }
        }
        // Two that were in each other's way do not meet again.
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 20 * 2 ** tries));
      }
    } finally {
      await session.endSession();
    }
  }

  private async findPlace(className: string, { tenant }: OperationContext): Promise<RowPlace> {
    const schemas = await this.catalogue.forTenant(tenant).snapshot();
    return { database: schemas.get(className)?.database, tenant };
  }
}

/** One attempt at the work of a transaction. */
class Attempt {
  /** Another writer was in the way: the same work may succeed later. */
  isContended = false;
  private failure: StoreErrorCode | null = null;
  private last: Promise<unknown> = Promise.resolve();
  /** It failed: what is still asked of it happens nowhere. */
  private isOver = false;

  constructor(
    private readonly transaction: MongoTransaction,
    private readonly connection: MongoConnection,
    private readonly catalogue: SchemaCatalogue,
    private readonly wrap: (writes: WriteStore) => WriteStore,
  ) {}

  async run<T>(operation: OperationContext, work: (stores: BoundStores) => Promise<T>): Promise<T> {
    const { transaction, catalogue } = this;
    const { session, place } = transaction;
    const bound = this.connection.within(session, place, place.tenant);
    session.startTransaction({ ...OPTIONS, maxCommitTimeMS: operation.maxTimeMS });
    try {
      const failure = () => this.failure;
      let written: WrittenRow | null = null;
      const keep: KeepChange = (before, after) =>
        void (written = { before: before && toImage(before), after: after && toImage(after) });
      const { committed, aborted } = transaction;
      const within = { keep, committed, aborted };
      const result = await work({
        reads: this.watch<ReadStore>(new MongoRecordReader(bound, catalogue)),
        writes: this.watch(this.wrap(new MongoRecordWriter(bound, catalogue, undefined, within))),
        lastWrite: this.watch(
          this.wrap(
            new MongoRecordWriter(bound, catalogue, undefined, { ...within, insert: transaction.hold }),
          ),
        ),
        images: new MongoRowImages(bound, catalogue, (operate) => this.inTurn(operate)),
        transaction,
        get written() {
          if (!written) throw new TypeError('no row was written');
          return written;
        },
        get failure() {
          return failure();
        },
      });
      await asStoreOperation(undefined, () => transaction.insertHeld());
      await this.commit();
      return result;
    } catch (error) {
      this.note(error);
      this.isOver = true;
      await this.last;
      if (session.inTransaction()) await session.abortTransaction().catch(() => undefined);
      if (!isOutcomeUnknown(error)) await settle(transaction.aborted);
      throw error;
    }
  }

  /** Above the stores errors are refusals, which do not say what the server said. */
  private watch<Store extends ReadStore | WriteStore>(store: Store): Store {
    const run = store.run.bind(store) as (...parts: unknown[]) => Promise<unknown>;
    const watched = (...parts: unknown[]) => this.inTurn(() => run(...parts));
    return Object.create(store, { run: { value: watched } }) as Store;
  }

  /** A transaction takes one operation after the other. */
  private inTurn<T>(operate: () => Promise<T>): Promise<T> {
    const turn = this.last.then(() => {
      if (this.isOver) throw new StoreError('cancelled');
      return operate();
    });
    this.last = turn.catch((error: unknown) => this.note(error));
    return turn;
  }

  private note(error: unknown): void {
    const cause: unknown = error instanceof StoreError ? error.cause : error;
    if (hasLabel(cause, 'TransientTransactionError')) this.isContended = true;
    // Values that the adapter refuses are not sent.
    if (isServerError(cause) || isDriverError(cause, 'MongoError')) this.failure ??= toStoreError(error).code;
  }

  private async commit(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        await this.transaction.session.commitTransaction();
        return;
      } catch (error) {
        if (hasLabel(error, 'TransientTransactionError')) throw error;
        const isUnknown = hasLabel(error, 'UnknownTransactionCommitResult');
        if (isUnknown && tries < COMMIT_TRIES) continue;
        const { code, cause } = toStoreError(error);
        throw new StoreError(code, { cause, ...(isUnknown && { outcome: 'unknown' as const }) });
      }
    }
  }
}

function hasLabel(error: unknown, label: string): boolean {
  if (!isServerError(error) && !isDriverError(error, 'MongoError')) return false;
  return (error as unknown as { hasErrorLabel(name: string): boolean }).hasErrorLabel(label);
}
