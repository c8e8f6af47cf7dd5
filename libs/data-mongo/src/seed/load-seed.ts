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
    let rows = 0;
    for (const content of await seedCollections(seed, options.now ?? new Date())) {
      await write(connection, content);
      rows += content.documents.length;
    }
    return { loaded: true, rows };
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
