import type { Document } from 'mongodb';
import { ClassSchemas, SchemaCatalogue } from '#data';
import type { ClassSchema, SchemaSnapshot } from '#policy';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { asStoreOperation, storeErrorOf } from '../errors.js';
import { classSchemaOf, listedIndexes, type StoredIndex } from './schema-row.js';

export interface SchemaCatalogueOptions {
  /** Milliseconds after which a snapshot is renewed in the background. Default 30 000. */
  readonly maxAge?: number;
  /** Milliseconds; for tests. */
  readonly now?: () => number;
}

const READ_LIMITS = { maxTimeMS: 10_000, comment: 'parley schema catalogue' };

/** A snapshot that could not be renewed for this many ages is no longer served: permissions may have changed. */
const STALE_AGES = 10;

/** Index listings asked at a time, for classes whose schema row names none. */
const LISTINGS_AT_ONCE = 8;

/** Classes and permissions as Parse Server keeps them in `_SCHEMA`. One reading at a time, however many ask. */
export class MongoSchemaCatalogue extends SchemaCatalogue {
  private current: { readonly snapshot: SchemaSnapshot; readonly readAt: number } | null = null;
  private reading: Promise<SchemaSnapshot> | null = null;
  private readonly maxAge: number;
  private readonly now: () => number;

  constructor(
    private readonly connection: MongoConnection,
    options: SchemaCatalogueOptions = {},
  ) {
    super();
    this.maxAge = options.maxAge ?? 30_000;
    this.now = options.now ?? (() => performance.now());
  }

  async snapshot(): Promise<SchemaSnapshot> {
    const age = this.current ? this.now() - this.current.readAt : Number.POSITIVE_INFINITY;
    if (!this.current || age > this.maxAge * STALE_AGES) return this.read();
    // The caller is served the old snapshot; a failed renewal is tried again by the next one.
    if (age > this.maxAge) this.read().catch(() => undefined);
    return this.current.snapshot;
  }

  invalidate(): void {
    this.current = null;
    this.reading = null;
  }

  private read(): Promise<SchemaSnapshot> {
    if (this.reading) return this.reading;
    const reading: Promise<SchemaSnapshot> = this.load()
      .then((snapshot) => {
        // A reading that began before an invalidation may have missed what it was about.
        if (this.reading === reading) this.current = { snapshot, readAt: this.now() };
        return snapshot;
      })
      .finally(() => {
        if (this.reading === reading) this.reading = null;
      });
    this.reading = reading;
    return reading;
  }

  private load(): Promise<SchemaSnapshot> {
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
    return classSchemaOf(row, listedIndexes(row) ?? (await this.askIndexes(String(row['_id']))));
  }

  /** A class without rows has no collection yet, and so no indexes. */
  private async askIndexes(className: string): Promise<readonly StoredIndex[]> {
    try {
      const indexes = await this.connection.collection(className).listIndexes(READ_LIMITS).toArray();
      return indexes.map(({ name, key, unique, weights }) => ({
        name: String(name),
        key: { ...key, ...weights },
        unique: unique === true,
      }));
    } catch (error) {
      if (storeErrorOf(error).code === 'unavailable') throw error;
      return [];
    }
  }
}
