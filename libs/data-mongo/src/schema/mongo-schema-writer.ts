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
 * permit it.
 */
async function makeGeoIndexes(
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
    await makeGeoIndexes(connection, className, added, operation);
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

/** Changes `_SCHEMA` as Parse Server does. A change that was sent is completed: its signal only prevents the start. */
@Injectable()
export class MongoSchemaWriter extends SchemaWriter {
  constructor(
    private readonly connection: MongoConnection,
    private readonly catalogue: SchemaCatalogue,
  ) {
    super();
  }

  createClass({ className, fields }: NewClass, operation: OperationContext): Promise<void> {
    return this.change(className, operation, async () => {
      const row = schemaRow({ className, fields, classLevelPermissions: NO_PERMISSIONS, indexes: [] });
      await this.connection.sendWrite(operation, () =>
        this.schemas.insertOne(row as OptionalUnlessRequiredId<DriverDocument>, limits(operation)),
      );
      await makeGeoIndexes(this.connection, className, fields, operation);
    });
  }

  addFields(
    className: string,
    fields: ReadonlyMap<string, FieldSchema>,
    operation: OperationContext,
  ): Promise<void> {
    return this.change(className, operation, async () => {
      await addColumns(this.connection, this.catalogue, className, fields, operation);
    });
  }

  deleteClass(className: string, operation: OperationContext): Promise<'deleted' | 'not_empty' | 'absent'> {
    return this.change(className, operation, async () => {
      if (await this.hasRows(className, operation)) return 'not_empty';
      const row: Document | null = await this.connection.sendWrite(operation, () =>
        this.schemas.findOneAndDelete({ _id: className }, limits(operation)),
      );
      if (!row) return 'absent';
      // From here no writer finds the class; a writer that read it earlier may have written already.
      if (await this.hasRows(className, operation)) {
        await this.schemas.insertOne(row as OptionalUnlessRequiredId<DriverDocument>, limits(operation));
        return 'not_empty';
      }
      for (const collection of [className, ...joinCollections(className, row)]) await this.drop(collection);
      return 'deleted';
    });
  }

  /** Only classes of Parse are created, changed and deleted here. */
  private async assertOfParse(className: string): Promise<void> {
    const storage = StoredClasses.of(await this.catalogue.snapshot()).find(className);
    if (storage) storage.assertPermits('alter');
    else
      throw new StoreError('unsupported', { advice: 'this database has no classes that calls can create' });
  }

  private get schemas() {
    return this.connection.collection('_SCHEMA');
  }

  private async hasRows(className: string, operation: OperationContext): Promise<boolean> {
    const some = { ...limits(operation), projection: { _id: 1 } };
    return (await this.connection.collection(className).findOne({}, some)) !== null;
  }

  /** A class without rows may have no collection at all. */
  private async drop(collection: string): Promise<void> {
    const named = await this.connection.db
      .listCollections({ name: collection }, { nameOnly: true })
      .toArray();
    if (named.length > 0) await this.connection.db.dropCollection(collection);
  }

  private async change<T>(
    className: string,
    operation: OperationContext,
    work: () => Promise<T>,
  ): Promise<T> {
    if (isAborted(operation)) throw new StoreError('cancelled', { cause: operation.signal.reason });
    try {
      return await asStoreOperation(undefined, async () => {
        await this.assertOfParse(className);
        return work();
      });
    } finally {
      this.catalogue.invalidate();
    }
  }
}

const limits = ({ maxTimeMS, comment }: OperationContext) => ({ maxTimeMS, comment });

/** The join collections that store the relations of a class. */
function joinCollections(className: string, row: Document): string[] {
  return Object.entries(row)
    .filter(([, type]) => typeof type === 'string' && type.startsWith('relation<'))
    .map(([field]) => `_Join:${field}:${className}`);
}
