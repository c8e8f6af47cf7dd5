import type { AnyBulkWriteOperation } from 'mongodb';
import type { OperationContext, SchemaCatalogue } from '#data';
import type { FieldSchema } from '#policy';
import type { MongoConnection, StoredDocument } from '../connection/mongo-connection.js';
import { storedType } from '../schema/schema-row.js';

/** Columns every schema row names, as Parse Server writes them for a new class. */
const NEW_CLASS = { objectId: 'string', createdAt: 'date', updatedAt: 'date' };

/** Adds columns to a class's schema row, and the row itself for a new class. A type that is already there stays. */
export async function addColumns(
  connection: MongoConnection,
  catalogue: SchemaCatalogue,
  className: string,
  columns: ReadonlyMap<string, FieldSchema>,
  operation: OperationContext,
): Promise<void> {
  const row: AnyBulkWriteOperation<StoredDocument> = {
    updateOne: { filter: { _id: className }, update: { $setOnInsert: NEW_CLASS }, upsert: true },
  };
  const additions = [...columns].map(([name, field]): AnyBulkWriteOperation<StoredDocument> => ({
    updateOne: {
      filter: { _id: className, [name]: { $exists: false } },
      update: { $set: { [name]: storedType(field) } },
    },
  }));
  const { maxTimeMS, comment } = operation;
  await connection.collection('_SCHEMA').bulkWrite([row, ...additions], { maxTimeMS, comment });
  catalogue.invalidate();
}
