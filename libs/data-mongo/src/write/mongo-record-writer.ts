import {
  BSON,
  type Collection,
  type Document,
  type FindOneAndUpdateOptions,
  type InsertOneOptions,
} from 'mongodb';
import { isAborted } from '#core';
import {
  isOutcomeUnknown,
  type OperationContext,
  type ParseRow,
  RecordWriter,
  type SchemaCatalogue,
  StoreError,
} from '#data';
import type { Where } from '#policy';
import { SIMPLE_COLLATION } from '../connection/collation.js';
import type { MongoConnection, DriverDocument } from '../connection/mongo-connection.js';
import { asStoreOperation } from '../errors.js';
import { classWhereToQuery } from '../query/where-to-query.js';
import { addColumns, makeGeoIndexes, withdrawColumns } from '../schema/mongo-schema-writer.js';
import type { ClassStorage } from '../storage/class-storage.js';
import { readDocument } from '../storage/documents.js';
import { StoredClasses } from '../storage/stored-classes.js';
import { changeDocument, setsColumns } from './change-document.js';
import { toUpdate, valuesOnCreate, withDefaults } from './written-fields.js';

/** Receives a row that is written, as it was stored and as it is: null where there is none. */
export type KeepChange = (before: Uint8Array | null, after: Uint8Array | null) => void;

/** Inserts a document, at once or later. */
export type InsertDocument = (
  collection: Collection<DriverDocument>,
  document: DriverDocument,
  options: InsertOneOptions,
) => Promise<unknown>;

/** What a transaction does for its writes. */
export interface WriterTransaction {
  readonly keep: KeepChange;
  /** Done once it is committed. */
  readonly committed: (() => Promise<void>)[];
  /** Done once nothing of it is applied. */
  readonly aborted: (() => Promise<void>)[];
  readonly insert?: InsertDocument;
}

const insertDocument: InsertDocument = (collection, document, options) =>
  collection.insertOne(document, options);

/**
 * Writes Parse rows to MongoDB by Parse's rules: ids, time stamps, column types, defaults and required fields. Values that
 * violate them are `invalid_query`. A write that was sent is completed: its signal only prevents the start.
 */
export class MongoRecordWriter extends RecordWriter {
  /** @param within the transaction of its writes; null: each is one of its own */
  constructor(
    private readonly connection: MongoConnection,
    private readonly catalogue: SchemaCatalogue,
    private readonly now: () => Date = () => new Date(),
    private readonly within: WriterTransaction | null = null,
  ) {
    super();
  }

  override get takesObjectIds(): boolean {
    return true;
  }

  override async idFor(className: string, text: string, operation: OperationContext): Promise<string> {
    return asStoreOperation(undefined, async () =>
      (await StoredClasses.read(this.catalogue, operation)).storage(className).idFor(text),
    );
  }

  create(
    className: string,
    fields: ParseRow,
    operation: OperationContext,
    objectId?: string,
  ): Promise<ParseRow> {
    return this.write(operation, () =>
      this.widenErrors('create', className, fields, operation, async (storage, isWidened) => {
        const values = withDefaults(valuesOnCreate(fields, storage), storage.schema);
        const document = storage.newDocument(values, objectId, this.now());
        const connection = this.connection.openForChanges(storage, operation.tenant);
        // A column that was added is removed again when the insert fails.
        const send = (!isWidened && this.within?.insert) || insertDocument;
        const collection = connection.collection(storage.collection);
        await connection.sendWrite(operation, () =>
          send(collection, document as DriverDocument, connection.limits(operation)),
        );
        this.within?.keep(null, BSON.serialize(document));
        return storage.toRow(document);
      }),
    );
  }

  update(
    className: string,
    objectId: string,
    fields: ParseRow,
    where: Where,
    operation: OperationContext,
    updatedAt?: string,
  ): Promise<ParseRow | null> {
    return this.write(operation, () =>
      this.widenErrors('update', className, fields, operation, async (storage) => {
        const at = updatedAt === undefined ? this.now() : new Date(updatedAt);
        const changes = toUpdate(fields, storage, at);
        const filter = rowFilter(objectId, where, storage);
        const connection = this.connection.openForChanges(storage, operation.tenant);
        const collection = connection.collection(storage.collection);
        const options = { ...connection.limits(operation), ...SIMPLE_COLLATION, ...storage.bson };
        const change = (how: FindOneAndUpdateOptions): Promise<Document | null> =>
          connection.sendWrite(operation, () =>
            collection.findOneAndUpdate(filter, changes, { ...options, ...how }),
          );
        if (!this.within) {
          const row = await change({ returnDocument: 'after' });
          return row && storage.toRow(row);
        }
        const changeAndRead = async (returnDocument: 'before' | 'after') =>
          (await change({ raw: true, returnDocument })) as Uint8Array | null;
        const isSet = setsColumns(changes);
        // Read by the whole constraint: an id alone may name rows of several shards.
        const before = isSet
          ? await changeAndRead('before')
          : ((await collection.findOne(filter, { ...options, raw: true })) as unknown as Uint8Array | null);
        const after = before && (isSet ? changeDocument(before, changes) : await changeAndRead('after'));
        if (!before || !after) return null;
        this.within.keep(before, after);
        return storage.toRow(readDocument(after, storage.bson));
      }),
    );
  }

  delete(className: string, objectId: string, where: Where, operation: OperationContext): Promise<boolean> {
    return this.write(operation, async () => {
      const storage = (await StoredClasses.read(this.catalogue, operation)).storage(className);
      storage.assertPermits('delete');
      const filter = rowFilter(objectId, where, storage);
      const connection = this.connection.openForChanges(storage, operation.tenant);
      const collection = connection.collection(storage.collection);
      const options = { ...connection.limits(operation), ...SIMPLE_COLLATION };
      if (!this.within) {
        const { deletedCount } = await connection.sendWrite(operation, () =>
          collection.deleteOne(filter, options),
        );
        return deletedCount === 1;
      }
      const before: unknown = await connection.sendWrite(operation, () =>
        collection.findOneAndDelete(filter, { ...options, raw: true }),
      );
      if (before) this.within.keep(before as Uint8Array, null);
      return before !== null;
    });
  }

  /**
   * Runs a write whose fields match the class. Columns that the class lacks are added first, and removed again when the write, or
   * its transaction, fails or finds no row.
   */
  private async widenErrors<Row extends ParseRow | null>(
    change: 'create' | 'update',
    className: string,
    fields: ParseRow,
    operation: OperationContext,
    work: (storage: ClassStorage, isWidened: boolean) => Promise<Row>,
  ): Promise<Row> {
    const storage = (await StoredClasses.read(this.catalogue, operation)).storage(className);
    storage.assertPermits(change);
    const wanted = storage.newColumns(fields);
    if (wanted.size === 0) return work(storage, false);
    const connection = this.connection.openForChanges(storage, operation.tenant);
    const catalogue = this.catalogue.forTenant(operation.tenant);
    const added = await addColumns(connection, catalogue, className, wanted, operation);
    const withdraw = () => withdrawColumns(connection, catalogue, className, added, operation);
    const makeIndexes = () => makeGeoIndexes(connection, className, added.columns, operation);
    let row: Row | undefined;
    let unknown = false;
    try {
      // Another writer may have added the same column with another type in the meantime.
      const widened = (await StoredClasses.read(this.catalogue, operation)).storage(className);
      widened.newColumns(fields);
      row = await work(widened, true);
      if (row && this.within) {
        this.within.aborted.push(withdraw);
        this.within.committed.push(makeIndexes);
      } else if (row) await makeIndexes();
      return row;
    } catch (error) {
      unknown = isOutcomeUnknown(error);
      throw error;
    } finally {
      // A column that remains is harmless; the error of the write must be reported.
      if (!row && !unknown) await withdraw().catch(() => undefined);
    }
  }

  private write<T>(operation: OperationContext, work: () => Promise<T>): Promise<T> {
    if (isAborted(operation))
      return Promise.reject(new StoreError('cancelled', { cause: operation.signal.reason }));
    return asStoreOperation(undefined, work);
  }
}

function rowFilter(objectId: string, where: Where, storage: ClassStorage) {
  return { $and: [{ _id: storage.idToStorage(objectId) as string }, classWhereToQuery(where, storage)] };
}
