import { Injectable } from '@nestjs/common';
import type { Document, IndexDescription, OptionalUnlessRequiredId } from 'mongodb';
import { isAborted } from '#core';
import {
  type NewClass,
  NO_PERMISSIONS,
  type OperationContext,
  SchemaCatalogue,
  SchemaWriter,
  StoreError,
} from '#data';
import type { FieldSchema } from '#policy';
import { MongoConnection, type DriverDocument } from '../connection/mongo-connection.js';
import { asStoreOperation } from '../errors.js';
import { pointerColumn } from '../storage/parse-values.js';
import { StoredClasses } from '../storage/stored-classes.js';
import { schemaRow, toStoredType } from './schema-row.js';

/** `$near` and `$nearSphere` need an index on their column. Parse Server creates it at the first such query. */
export function geoIndexes(fields: Iterable<readonly [string, FieldSchema]>): IndexDescription[] {
  return [...fields].flatMap(([name, { type }]) =>
    type === 'GeoPoint' ? [{ name: `${name}_2dsphere`, key: { [name]: '2dsphere' } }] : [],
  );
}

/**
 * Creates the indexes of new columns. A write does not fail because an index could not be created: the operator may not
 * permit it. While a transaction is open that uses the class, the database creates none.
 */
export async function makeGeoIndexes(
  connection: MongoConnection,
  className: string,
  fields: Iterable<readonly [string, FieldSchema]>,
  { maxTimeMS, comment }: OperationContext,
): Promise<void> {
  const indexes = geoIndexes(fields);
  if (indexes.length === 0) return;
  await connection
    .collection(className)
    .createIndexes(indexes, { maxTimeMS, comment })
    .catch(() => undefined);
}

/** Columns that every schema row contains, as Parse Server writes them for a new class. */
const NEW_CLASS = { objectId: 'string', createdAt: 'date', updatedAt: 'date' };

/** What one write added to a class's schema, to be reverted when the write fails. */
interface AddedColumns {
  readonly columns: ReadonlyMap<string, FieldSchema>;
  /** The write also created the class. */
  readonly newClass: boolean;
}

/** Adds columns to a class's schema row, and the row itself for a new class. An existing column keeps its type. */
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
        { $set: { [name]: toStoredType(field) } },
        limits,
      );
      if (modifiedCount === 1) added.set(name, field);
    }
  } finally {
    catalogue.invalidate();
  }
  return { columns: added, newClass };
}

/** Reverts what `addColumns` added, unless a row already uses it, so that a failed write leaves no trace. */
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

/**
 * Changes `_SCHEMA` as Parse Server does, in the database that holds the class; a new class is one of the database of the service.
 * A change that was sent is completed: its signal only prevents the start.
 */
@Injectable()
export class MongoSchemaWriter extends SchemaWriter {
  constructor(
    private readonly connection: MongoConnection,
    private readonly catalogue: SchemaCatalogue,
  ) {
    super();
  }

  createClass({ className, fields }: NewClass, operation: OperationContext): Promise<void> {
    return this.change(className, operation, async (connection) => {
      const row = schemaRow({ className, fields, classLevelPermissions: NO_PERMISSIONS, indexes: [] });
      await connection.sendWrite(operation, () =>
        schemasOf(connection).insertOne(row as OptionalUnlessRequiredId<DriverDocument>, limits(operation)),
      );
      await makeGeoIndexes(connection, className, fields, operation);
    });
  }

  deleteClass(className: string, operation: OperationContext): Promise<'deleted' | 'not_empty' | 'absent'> {
    return this.change(className, operation, async (connection) => {
      if (await hasRows(connection, className, operation)) return 'not_empty';
      const schemas = schemasOf(connection);
      const row: Document | null = await connection.sendWrite(operation, () =>
        schemas.findOneAndDelete({ _id: className }, limits(operation)),
      );
      if (!row) return 'absent';
      // From here no writer finds the class; a writer that read it earlier may have written already.
      if (await hasRows(connection, className, operation)) {
        await schemas.insertOne(row as OptionalUnlessRequiredId<DriverDocument>, limits(operation));
        return 'not_empty';
      }
      for (const collection of [className, ...joinCollections(className, row)])
        await drop(connection, collection);
      return 'deleted';
    });
  }

  /** The database of a class. Only classes of Parse are created, changed and deleted here. */
  private async findDatabase(className: string, operation: OperationContext): Promise<MongoConnection> {
    const storage = (await StoredClasses.read(this.catalogue, operation)).find(className);
    if (!storage)
      throw new StoreError('unsupported', { advice: 'this database has no classes that calls can create' });
    storage.assertPermits('alter');
    return this.connection.openForChanges(storage, operation.tenant);
  }

  private async change<T>(
    className: string,
    operation: OperationContext,
    work: (connection: MongoConnection) => Promise<T>,
  ): Promise<T> {
    if (isAborted(operation)) throw new StoreError('cancelled', { cause: operation.signal.reason });
    try {
      return await asStoreOperation(undefined, async () =>
        work(await this.findDatabase(className, operation)),
      );
    } finally {
      this.catalogue.forTenant(operation.tenant).invalidate();
    }
  }
}

const schemasOf = (connection: MongoConnection) => connection.collection('_SCHEMA');

async function hasRows(
  connection: MongoConnection,
  className: string,
  operation: OperationContext,
): Promise<boolean> {
  const some = { ...limits(operation), projection: { _id: 1 } };
  return (await connection.collection(className).findOne({}, some)) !== null;
}

/** A class without rows may have no collection at all. */
async function drop({ db }: MongoConnection, collection: string): Promise<void> {
  const named = await db.listCollections({ name: collection }, { nameOnly: true }).toArray();
  if (named.length > 0) await db.dropCollection(collection);
}

const limits = ({ maxTimeMS, comment }: OperationContext) => ({ maxTimeMS, comment });

/** The join collections that store the relations of a class. */
function joinCollections(className: string, row: Document): string[] {
  return Object.entries(row)
    .filter(([, type]) => typeof type === 'string' && type.startsWith('relation<'))
    .map(([field]) => `_Join:${field}:${className}`);
}
