import type { Document, OptionalUnlessRequiredId } from 'mongodb';
import {
  type NewClass,
  NO_PERMISSIONS,
  type OperationContext,
  type SchemaCatalogue,
  SchemaWriter,
  StoreError,
} from '#data';
import type { FieldSchema } from '#policy';
import type { MongoConnection, StoredDocument } from '../connection/mongo-connection.js';
import { asStoreOperation } from '../errors.js';
import { makeGeoIndexes } from '../schema/geo-index.js';
import { schemaRow } from '../schema/schema-row.js';
import { sentWrite } from './sent-write.js';
import { addColumns } from './schema-columns.js';

/** Changes `_SCHEMA` as Parse Server does. A change that was sent is finished: its signal only keeps it from starting. */
export class MongoSchemaWriter extends SchemaWriter {
  constructor(
    private readonly connection: MongoConnection,
    private readonly catalogue: SchemaCatalogue,
  ) {
    super();
  }

  createClass({ className, fields }: NewClass, operation: OperationContext): Promise<void> {
    return this.change(operation, async () => {
      const row = schemaRow({ className, fields, classLevelPermissions: NO_PERMISSIONS, indexes: [] });
      await sentWrite(this.connection, () =>
        this.schemas.insertOne(row as OptionalUnlessRequiredId<StoredDocument>, limits(operation)),
      );
      await makeGeoIndexes(this.connection, className, fields, operation);
    });
  }

  addFields(
    className: string,
    fields: ReadonlyMap<string, FieldSchema>,
    operation: OperationContext,
  ): Promise<void> {
    return this.change(operation, async () => {
      await addColumns(this.connection, this.catalogue, className, fields, operation);
    });
  }

  deleteClass(className: string, operation: OperationContext): Promise<'deleted' | 'not_empty' | 'absent'> {
    return this.change(operation, async () => {
      if (await this.hasRows(className, operation)) return 'not_empty';
      const row: Document | null = await sentWrite(this.connection, () =>
        this.schemas.findOneAndDelete({ _id: className }, limits(operation)),
      );
      if (!row) return 'absent';
      // From here no writer finds the class; one that already had may have been first.
      if (await this.hasRows(className, operation)) {
        await this.schemas.insertOne(row as OptionalUnlessRequiredId<StoredDocument>, limits(operation));
        return 'not_empty';
      }
      for (const collection of [className, ...joinCollections(className, row)]) await this.drop(collection);
      return 'deleted';
    });
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

  private async change<T>({ signal }: OperationContext, work: () => Promise<T>): Promise<T> {
    if (signal.aborted) throw new StoreError('cancelled', { cause: signal.reason });
    try {
      return await asStoreOperation(undefined, work);
    } finally {
      this.catalogue.invalidate();
    }
  }
}

const limits = ({ maxTimeMS, comment }: OperationContext) => ({ maxTimeMS, comment });

/** Where the relations of a class are kept. */
function joinCollections(className: string, row: Document): string[] {
  return Object.entries(row)
    .filter(([, type]) => typeof type === 'string' && type.startsWith('relation<'))
    .map(([field]) => `_Join:${field}:${className}`);
}
