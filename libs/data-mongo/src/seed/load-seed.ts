import type { Document, OptionalUnlessRequiredId } from 'mongodb';
import type { MongoConnection, StoredDocument } from '../connection/mongo-connection.js';
import { asStoreOperation } from '../errors.js';
import type { Seed } from './seed.js';
import { type CollectionContent, seedCollections } from './seed-documents.js';

export interface LoadSeedOptions {
  /** Leaves a database that already has a Parse schema alone. Default true. */
  readonly onlyIfEmpty?: boolean;
  /** When rows without dates were made. Default: now. */
  readonly now?: Date;
}

export interface LoadedSeed {
  /** False when the database was not empty and so nothing was written. */
  readonly loaded: boolean;
  /** Documents written, join rows included. */
  readonly rows: number;
}

const ROWS_PER_INSERT = 1000;

const COMMENT = 'parley seed';

/**
 * Writes a seed as Parse Server would have stored it.
 * @throws StoreError `duplicate` when rows of the seed are there already
 */
export function loadSeed(
  connection: MongoConnection,
  seed: Seed,
  options: LoadSeedOptions = {},
): Promise<LoadedSeed> {
  return asStoreOperation(undefined, async () => {
    if ((options.onlyIfEmpty ?? true) && (await hasSchema(connection))) return { loaded: false, rows: 0 };
    const { collections, schema } = await seedCollections(seed, options.now ?? new Date());
    await Promise.all(collections.map((content) => write(connection, content)));
    // Last, so that a database with a schema is one that was loaded to the end.
    await write(connection, schema);
    return { loaded: true, rows: collections.reduce((sum, { documents }) => sum + documents.length, 0) };
  });
}

async function hasSchema(connection: MongoConnection): Promise<boolean> {
  const row = await connection
    .collection('_SCHEMA')
    .findOne({}, { projection: { _id: 1 }, comment: COMMENT });
  return row !== null;
}

async function write(
  connection: MongoConnection,
  { name, documents, indexes }: CollectionContent,
): Promise<void> {
  const collection = connection.collection(name);
  if (indexes.length > 0) await collection.createIndexes([...indexes], { comment: COMMENT });
  for (let from = 0; from < documents.length; from += ROWS_PER_INSERT) {
    const batch: readonly Document[] = documents.slice(from, from + ROWS_PER_INSERT);
    await collection.insertMany(batch as OptionalUnlessRequiredId<StoredDocument>[], {
      ordered: false,
      comment: COMMENT,
    });
  }
}
