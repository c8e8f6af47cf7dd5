import type { ClientSession, TransactionOptions } from 'mongodb';
import {
  type BoundStores,
  type OperationContext,
  type ReadStore,
  type RowImage,
  RowTransactions,
  type SchemaCatalogue,
  StoreError,
  type StoreErrorCode,
  RowTransaction,
  type WriteStore,
} from '#data';
import { inspectMongo } from '../connection/inspect-mongo.js';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { isDriverError, isServerError, toStoreError } from '../errors.js';
import { MongoRecordReader } from '../read/mongo-record-reader.js';
import { MongoRecordWriter } from '../write/mongo-record-writer.js';
import { MongoRowImages, toImage } from './mongo-row-images.js';

/** A transaction of the driver. */
export class MongoTransaction extends RowTransaction {
  constructor(readonly session: ClientSession) {
    super();
  }
}

/** Attempts at a transaction while other writers change its rows. */
const CONTENDED_TRIES = 5;
/** Attempts to learn whether a transaction was committed. */
const COMMIT_TRIES = 5;
/** Milliseconds that finding out about the server may take. */
const INSPECT_MS = 3_000;

const OPTIONS: TransactionOptions = {
  readPreference: 'primary',
  readConcern: { level: 'snapshot' },
  writeConcern: { w: 'majority' },
};

/** Transactions of MongoDB, which replica sets and sharded clusters have. */
export class MongoRowTransactions extends RowTransactions {
  readonly images: MongoRowImages;

  /** @param wrap the writes of a transaction, as other writes are wrapped */
  constructor(
    private readonly connection: MongoConnection,
    private readonly catalogue: SchemaCatalogue,
    private readonly wrap: (writes: WriteStore) => WriteStore = (writes) => writes,
  ) {
    super();
    this.images = new MongoRowImages(connection, catalogue);
  }

  async findObstacle(): Promise<string | null> {
    const { topology } = await inspectMongo(this.connection, INSPECT_MS);
    return topology === 'standalone'
      ? 'the database is a standalone server, which has no transactions: make it a replica set (one member is enough)'
      : null;
  }

  async run<T>(operation: OperationContext, work: (stores: BoundStores) => Promise<T>): Promise<T> {
    const session = this.connection.startSession();
    try {
      for (let tries = 1; ; tries += 1) {
        const attempt = new Attempt(session, this.connection, this.catalogue, this.wrap);
        try {
          return await attempt.run(operation, work);
        } catch (error) {
          if (!attempt.isContended || tries === CONTENDED_TRIES) throw error;
        }
        // Two that were in each other's way do not meet again.
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 20 * 2 ** tries));
      }
    } finally {
      await session.endSession();
    }
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
    private readonly session: ClientSession,
    private readonly connection: MongoConnection,
    private readonly catalogue: SchemaCatalogue,
    private readonly wrap: (writes: WriteStore) => WriteStore,
  ) {}

  async run<T>(operation: OperationContext, work: (stores: BoundStores) => Promise<T>): Promise<T> {
    const { session, catalogue } = this;
    const bound = this.connection.within(session);
    session.startTransaction({ ...OPTIONS, maxCommitTimeMS: operation.maxTimeMS });
    try {
      const failure = () => this.failure;
      let left: RowImage | null = null;
      const keep = (row: Uint8Array) => void (left = toImage(row));
      const result = await work({
        reads: this.watch<ReadStore>(new MongoRecordReader(bound, catalogue)),
        writes: this.watch(this.wrap(new MongoRecordWriter(bound, catalogue, undefined, keep))),
        images: new MongoRowImages(bound, catalogue, (operate) => this.inTurn(operate)),
        transaction: new MongoTransaction(session),
        get left() {
          return left;
        },
        get failure() {
          return failure();
        },
      });
      await this.commit();
      return result;
    } catch (error) {
      this.note(error);
      this.isOver = true;
      await this.last;
      if (session.inTransaction()) await session.abortTransaction().catch(() => undefined);
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
        await this.session.commitTransaction();
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
