import type { OperationContext, SchemaCatalogue } from '#data';
import type { FieldSchema } from '#policy';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { makeGeoIndexes } from '../schema/geo-index.js';
import { storedType } from '../schema/schema-row.js';
import { pointerColumn } from '../storage/storage-names.js';

/** Columns every schema row names, as Parse Server writes them for a new class. */
const NEW_CLASS = { objectId: 'string', createdAt: 'date', updatedAt: 'date' };

/** What one write added to a class's schema: what to take back when the write itself fails. */
export interface AddedColumns {
  readonly columns: ReadonlyMap<string, FieldSchema>;
  /** The class itself came with them. */
  readonly newClass: boolean;
}

/** Adds columns to a class's schema row, and the row itself for a new class. A type that is already there stays. */
export async function addColumns(
  connection: MongoConnection,
  catalogue: SchemaCatalogue,
  className: string,
  columns: ReadonlyMap<string, FieldSchema>,
  operation: OperationContext,
): Promise<AddedColumns> {
  const { maxTimeMS, comment } = operation;
  const schemas = connection.collection('_SCHEMA');
  const limits = { maxTimeMS, comment };
  const added = new Map<string, FieldSchema>();
  let newClass = false;
  try {
    const row = await schemas.updateOne(
      { _id: className },
      { $setOnInsert: NEW_CLASS },
      { ...limits, upsert: true },
    );
    newClass = row.upsertedCount === 1;
    for (const [name, field] of columns) {
      const { modifiedCount } = await schemas.updateOne(
        { _id: className, [name]: { $exists: false } },
        { $set: { [name]: storedType(field) } },
        limits,
      );
      if (modifiedCount === 1) added.set(name, field);
    }
    await makeGeoIndexes(connection, className, added, operation);
  } finally {
    catalogue.invalidate();
  }
  return { columns: added, newClass };
}

/** Takes back what `addColumns` added, as far as no row has come to use it: a write that fails leaves no trace. */
export async function withdrawColumns(
  connection: MongoConnection,
  catalogue: SchemaCatalogue,
  className: string,
  { columns, newClass }: AddedColumns,
  { maxTimeMS, comment }: OperationContext,
): Promise<void> {
  if (columns.size === 0 && !newClass) return;
  const schemas = connection.collection('_SCHEMA');
  const rows = connection.collection(className);
  const limits = { maxTimeMS, comment };
  const unused: string[] = [];
  for (const [name, { type }] of columns) {
    const column = type === 'Pointer' ? pointerColumn(name) : name;
    const used = await rows.findOne({ [column]: { $exists: true } }, { ...limits, projection: { _id: 1 } });
    if (!used) unused.push(name);
  }
  if (newClass && unused.length === columns.size) {
    await schemas.deleteOne({ _id: className }, limits);
  } else if (unused.length > 0) {
    await schemas.updateOne(
      { _id: className },
      { $unset: Object.fromEntries(unused.map((name) => [name, ''])) },
      limits,
    );
  }
  catalogue.invalidate();
}
