import type { Document } from 'mongodb';
import { ageClock } from '#core';
import { answerLeft, type CatalogueOptions, RenewedCatalogue } from '#data';
import type { ClassSchema, IndexSchema, SchemaSnapshot } from '#policy';
import { readBoundedRows } from '../answers/bounded-rows.js';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { asStoreOperation, isServerError } from '../errors.js';
import { createStorage, StoredSchemas } from '../storage/stored-classes.js';
import { type CatalogueProblem, PlainClassReader } from './plain-classes.js';
import { toClassSchema, toIndexSchemas, readIndexes, type StoredIndex } from './schema-row.js';
import { PARSE_ALONE, type StorageDeclarations } from './storage-declarations.js';

const READ_LIMITS = { maxTimeMS: 10_000, comment: 'parley schema catalogue' };

/** The server's codes for a collection that does not exist, and for a view, which has no indexes. */
const WITHOUT_INDEXES = new Set<unknown>([26, 166]);

/** Rows per batch: without it a server returns the first hundred and needs a further round trip. */
const AT_ONCE = 10_000;

/** Bytes that are reserved for the classes before they arrive. */
const EXPECTED_BYTES = 1024 * 1024;

interface MongoCatalogueOptions extends CatalogueOptions {
  /** The classes of this database, asked for at every reading. Default: every class of Parse and no other. */
  readonly declared?: () => StorageDeclarations;
}

/**
 * Classes and permissions as Parse Server stores them in `_SCHEMA`, read with one command, and the declared classes that Parse
 * does not store, read from their collections.
 */
export class MongoSchemaCatalogue extends RenewedCatalogue {
  /** Keyed by the class object of a snapshot, so that both are released together. */
  private readonly indexes = new WeakMap<ClassSchema, Promise<readonly IndexSchema[]>>();

  private readonly declared: () => StorageDeclarations;
  private readonly plainClasses: PlainClassReader;
  private found: readonly CatalogueProblem[] = [];

  constructor(
    private readonly connection: MongoConnection,
    options: MongoCatalogueOptions = {},
  ) {
    super(options);
    this.declared = options.declared ?? (() => PARSE_ALONE);
    this.plainClasses = new PlainClassReader(connection, options.now ?? ageClock);
  }

  /** What is wrong with declared classes. @throws StoreError */
  async problems(): Promise<readonly CatalogueProblem[]> {
    await this.snapshot();
    return this.found;
  }

  override forget(): void {
    this.plainClasses.forget();
    super.forget();
  }

  /** Schema rows may list fewer indexes and do not mark unique ones; the collection does. */
  listIndexes(schema: ClassSchema): Promise<readonly IndexSchema[]> {
    const known = this.indexes.get(schema);
    if (known) return known;
    const storage = createStorage(schema);
    const indexes = this.readIndexes(storage.collection).then((listed) => toIndexSchemas(storage, listed));
    this.indexes.set(schema, indexes);
    // A failed read is repeated at the next call.
    indexes.catch(() => this.indexes.delete(schema));
    return indexes;
  }

  protected load(why: 'age' | 'names'): Promise<SchemaSnapshot> {
    return asStoreOperation(undefined, async () => {
      const { parse, plain } = this.declared();
      const isPlain = new Set(plain.map(({ className }) => className));
      const rows = (await this.parseClasses(parse)).filter(({ className }) => !isPlain.has(className));
      const names = new Set(rows.map(({ className }) => className));
      const { schemas, problems } = await this.plainClasses.read(plain, names, {
        maxTimeMS: READ_LIMITS.maxTimeMS,
        forNames: why === 'names',
      });
      this.found = problems;
      const closed = new Set([...isPlain, ...plain.map(({ collection }) => collection)]);
      const admits = (className: string) =>
        !closed.has(className) && (parse === 'all' || parse.has(className));
      return new StoredSchemas([...rows, ...schemas], admits);
    });
  }

  private async parseClasses(wanted: StorageDeclarations['parse']): Promise<readonly ClassSchema[]> {
    if (wanted !== 'all' && wanted.size === 0) return [];
    const rows = this.connection
      .collection('_SCHEMA')
      .find<Document>(wanted === 'all' ? {} : { _id: { $in: [...wanted] } }, {
        ...READ_LIMITS,
        batchSize: AT_ONCE,
        raw: true,
      });
    const signal = AbortSignal.timeout(READ_LIMITS.maxTimeMS);
    const operation = { maxTimeMS: READ_LIMITS.maxTimeMS, signal };
    const read = { operation, expected: EXPECTED_BYTES, left: answerLeft() };
    return readBoundedRows(rows, read, (row) => toClassSchema(row, readIndexes(row)));
  }

  private readIndexes(collection: string): Promise<readonly StoredIndex[]> {
    return asStoreOperation(undefined, async () => {
      const indexes = await this.connection
        .collection(collection)
        .listIndexes(READ_LIMITS)
        .toArray()
        .catch((error: unknown) => {
          // A class without rows has no collection yet, and so no indexes.
          if (isServerError(error) && WITHOUT_INDEXES.has(error.code)) return [];
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
