import type { Document, OptionalUnlessRequiredId } from 'mongodb';
import { type OperationContext, type ParseRow, RecordWriter, type SchemaCatalogue, StoreError } from '#data';
import type { ClassSchema, Where } from '#policy';
import type { MongoConnection, StoredDocument } from '../connection/mongo-connection.js';
import { asStoreOperation } from '../errors.js';
import { classWhereToQuery } from '../query/where-to-query.js';
import { addColumns, withdrawColumns } from '../schema/mongo-schema-writer.js';
import { documentToRow, rowToDocument } from '../storage/stored-values.js';
import { newObjectId } from '../storage/object-ids.js';
import { type StorageNames, StoredClasses } from '../storage/storage-names.js';
import { newColumns, updateOf, valuesOnCreate, withDefaults } from './written-fields.js';

/**
 * Writes Parse rows to MongoDB by Parse's rules: ids, time stamps, column types, defaults and required fields. Values that
 * violate them are `invalid_query`. A write that was sent is completed: its signal only prevents the start.
 */
export class MongoRecordWriter extends RecordWriter {
  constructor(
    private readonly connection: MongoConnection,
    private readonly catalogue: SchemaCatalogue,
    private readonly now: () => Date = () => new Date(),
  ) {
    super();
  }

  override get takesObjectIds(): boolean {
    return true;
  }

  create(
    className: string,
    fields: ParseRow,
    operation: OperationContext,
    objectId = newObjectId(),
  ): Promise<ParseRow> {
    return this.write(operation, () =>
      this.widened(className, fields, operation, async (names) => {
        const at = this.now().toISOString();
        const values = withDefaults(valuesOnCreate(fields), names.schema);
        const row = { objectId, ...values, createdAt: at, updatedAt: at };
        const document = rowToDocument(withOwnAcl(row, className), names);
        await this.connection.sendWrite(operation, () =>
          this.connection
            .collection(className)
            .insertOne(document as OptionalUnlessRequiredId<StoredDocument>, limits(operation)),
        );
        return documentToRow(document, names);
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
      this.widened(className, fields, operation, async (names) => {
        const at = updatedAt === undefined ? this.now() : new Date(updatedAt);
        const changes = updateOf(fields, names, at);
        const document: Document | null = await this.connection.sendWrite(operation, () =>
          this.connection.collection(className).findOneAndUpdate(rowFilter(objectId, where, names), changes, {
            ...limits(operation),
            returnDocument: 'after',
          }),
        );
        return document && documentToRow(document, names);
      }),
    );
  }

  delete(className: string, objectId: string, where: Where, operation: OperationContext): Promise<boolean> {
    return this.write(operation, async () => {
      const names = await this.names(className);
      const { deletedCount } = await this.connection.sendWrite(operation, () =>
        this.connection.collection(className).deleteOne(rowFilter(objectId, where, names), limits(operation)),
      );
      return deletedCount === 1;
    });
  }

  /**
   * Runs a write whose fields match the class. Columns that the class lacks are added first, and removed again when the write
   * fails or finds no row.
   */
  private async widened<Row extends ParseRow | null>(
    className: string,
    fields: ParseRow,
    operation: OperationContext,
    work: (names: StorageNames) => Promise<Row>,
  ): Promise<Row> {
    const wanted = newColumns(fields, await this.schema(className));
    if (wanted.size === 0) return work(await this.names(className));
    const added = await addColumns(this.connection, this.catalogue, className, wanted, operation);
    let row: Row | undefined;
    let unknown = false;
    try {
      // Another writer may have added the same column with another type in the meantime.
      newColumns(fields, await this.schema(className));
      row = await work(await this.names(className));
      return row;
    } catch (error) {
      unknown = error instanceof StoreError && error.outcome === 'unknown';
      throw error;
    } finally {
      // A column that remains is harmless; the error of the write must be reported.
      if (!row && !unknown)
        await withdrawColumns(this.connection, this.catalogue, className, added, operation).catch(
          () => undefined,
        );
    }
  }

  private async names(className: string): Promise<StorageNames> {
    return StoredClasses.of(await this.catalogue.snapshot()).names(className);
  }

  private async schema(className: string): Promise<ClassSchema | undefined> {
    return (await this.catalogue.snapshot()).get(className);
  }

  private write<T>({ signal }: OperationContext, work: () => Promise<T>): Promise<T> {
    if (signal.aborted) return Promise.reject(new StoreError('cancelled', { cause: signal.reason }));
    return asStoreOperation(undefined, work);
  }
}

const limits = ({ maxTimeMS, comment }: OperationContext) => ({ maxTimeMS, comment });

function rowFilter(objectId: string, where: Where, names: StorageNames) {
  return { $and: [{ _id: objectId }, classWhereToQuery(where, names)] };
}

/** A user row without an ACL would be public; Parse restricts it to the user. */
function withOwnAcl(row: ParseRow, className: string): ParseRow {
  if (className !== '_User' || row['ACL'] !== undefined) return row;
  return { ...row, ACL: { [String(row['objectId'])]: { read: true, write: true } } };
}
