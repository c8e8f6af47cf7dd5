import type { Document } from 'mongodb';
import { type CatalogueOptions, ClassSchemas, RenewedCatalogue } from '#data';
import type { ClassSchema, SchemaSnapshot } from '#policy';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { asStoreOperation, storeErrorOf } from '../errors.js';
import { classSchemaOf, listedIndexes, type StoredIndex } from './schema-row.js';

const READ_LIMITS = { maxTimeMS: 10_000, comment: 'parley schema catalogue' };

/** Index listings asked at a time. */
const LISTINGS_AT_ONCE = 8;

/** Classes and permissions as Parse Server keeps them in `_SCHEMA`. */
export class MongoSchemaCatalogue extends RenewedCatalogue {
  constructor(
    private readonly connection: MongoConnection,
    options?: CatalogueOptions,
  ) {
    super(options);
  }

  protected load(): Promise<SchemaSnapshot> {
    return asStoreOperation(undefined, async () => {
      const rows = await this.connection.collection('_SCHEMA').find<Document>({}, READ_LIMITS).toArray();
      const schemas: ClassSchema[] = [];
      for (let from = 0; from < rows.length; from += LISTINGS_AT_ONCE) {
        const some = rows.slice(from, from + LISTINGS_AT_ONCE);
        schemas.push(...(await Promise.all(some.map((row) => this.classSchema(row)))));
      }
      return new ClassSchemas(schemas);
    });
  }

  private async classSchema(row: Document): Promise<ClassSchema> {
    // The row may list fewer than there are, and does not say which are unique: that is the collection's to tell.
    const asked = await this.askIndexes(String(row['_id']));
    return classSchemaOf(row, asked.length > 0 ? asked : (listedIndexes(row) ?? []));
  }

  /** A class without rows has no collection yet, and so no indexes. */
  private async askIndexes(className: string): Promise<readonly StoredIndex[]> {
    try {
      const indexes = await this.connection.collection(className).listIndexes(READ_LIMITS).toArray();
      return indexes.map(({ name, key, unique, sparse, partialFilterExpression, weights }) => ({
        name: String(name),
        key: { ...key, ...weights },
        unique: unique === true,
        sparse: sparse === true,
        partial: partialFilterExpression !== undefined,
      }));
    } catch (error) {
      if (storeErrorOf(error).code === 'unavailable') throw error;
      return [];
    }
  }
}
