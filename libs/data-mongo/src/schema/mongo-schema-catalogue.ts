import type { Document } from 'mongodb';
import { answerLeft, type CatalogueOptions, ClassSchemas, RenewedCatalogue } from '#data';
import type { ClassSchema, IndexSchema, SchemaSnapshot } from '#policy';
import { boundedRows } from '../answers/bounded-rows.js';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { ParseStorage } from '../storage/parse-storage.js';
import { asStoreOperation, isServerError } from '../errors.js';
import { classSchemaOf, indexSchemasOf, listedIndexes, type StoredIndex } from './schema-row.js';

const READ_LIMITS = { maxTimeMS: 10_000, comment: 'parley schema catalogue' };

const NO_COLLECTION = 26;

/** Rows per batch: without it a server returns the first hundred and needs a further round trip. */
const AT_ONCE = 10_000;

/** Bytes that are reserved for the classes before they arrive. */
const EXPECTED_BYTES = 1024 * 1024;

/** Classes and permissions as Parse Server stores them in `_SCHEMA`, read with one command. */
export class MongoSchemaCatalogue extends RenewedCatalogue {
  /** Keyed by the class object of a snapshot, so that both are released together. */
  private readonly indexes = new WeakMap<ClassSchema, Promise<readonly IndexSchema[]>>();

  constructor(
    private readonly connection: MongoConnection,
    options?: CatalogueOptions,
  ) {
    super(options);
  }

  /** Schema rows may list fewer indexes and do not mark unique ones; the collection does. */
  indexesOf(schema: ClassSchema): Promise<readonly IndexSchema[]> {
    const known = this.indexes.get(schema);
    if (known) return known;
    const storage = new ParseStorage(schema.className, schema);
    const indexes = this.readIndexes(storage.collection).then((listed) => indexSchemasOf(storage, listed));
    this.indexes.set(schema, indexes);
    // A failed read is repeated at the next call.
    indexes.catch(() => this.indexes.delete(schema));
    return indexes;
  }

  protected load(): Promise<SchemaSnapshot> {
    return asStoreOperation(undefined, async () => {
      const rows = this.connection
        .collection('_SCHEMA')
        .find<Document>({}, { ...READ_LIMITS, batchSize: AT_ONCE, raw: true });
      const signal = AbortSignal.timeout(READ_LIMITS.maxTimeMS);
      const operation = { maxTimeMS: READ_LIMITS.maxTimeMS, signal };
      const read = { operation, expected: EXPECTED_BYTES, left: answerLeft() };
      return new ClassSchemas(await boundedRows(rows, read, (row) => classSchemaOf(row, listedIndexes(row))));
    });
  }

  private readIndexes(collection: string): Promise<readonly StoredIndex[]> {
    return asStoreOperation(undefined, async () => {
      const indexes = await this.connection
        .collection(collection)
        .listIndexes(READ_LIMITS)
        .toArray()
        .catch((error: unknown) => {
          // A class without rows has no collection yet, and so no indexes.
          if (isServerError(error) && error.code === NO_COLLECTION) return [];
          throw error;
        });
      return indexes.map(({ name, key, unique, sparse, partialFilterExpression, weights }) => ({
        name: String(name),
        key: { ...key, ...weights },
        unique: unique === true,
        sparse: sparse === true,
        partial: partialFilterExpression !== undefined,
      }));
    });
  }
}
