import type { IndexDescription, OptionalUnlessRequiredId } from 'mongodb';
import type { MongoConnection, StoredDocument } from '../connection/mongo-connection.js';
import { asStoreOperation } from '../errors.js';

const COMMENT = 'parley snapshot';

interface KeptCollection {
  readonly name: string;
  readonly documents: readonly StoredDocument[];
  /** As `listIndexes` tells them, without that of `_id`. */
  readonly indexes: readonly IndexDescription[];
}

/**
 * All documents of a database at one moment, held in memory, to go back to. For databases of tests: nobody may write while
 * it is taken or put back.
 */
export class DatabaseSnapshot {
  private constructor(
    private readonly connection: MongoConnection,
    private readonly collections: readonly KeptCollection[],
  ) {}

  /** @throws StoreError */
  static take(connection: MongoConnection): Promise<DatabaseSnapshot> {
    return asStoreOperation(undefined, async () => {
      const names = await namesIn(connection);
      return new DatabaseSnapshot(connection, await Promise.all(names.map((name) => kept(connection, name))));
    });
  }

  /** Writes the documents back, and removes all others. @throws StoreError */
  putBack(): Promise<void> {
    return asStoreOperation(undefined, async () => {
      const known = new Set(this.collections.map(({ name }) => name));
      const others = (await namesIn(this.connection)).filter((name) => !known.has(name));
      await Promise.all(others.map((name) => this.connection.collection(name).drop({ comment: COMMENT })));
      await Promise.all(this.collections.map((collection) => this.fill(collection)));
    });
  }

  /** Emptied rather than dropped: whoever follows its changes goes on doing so. */
  private async fill({ name, documents, indexes }: KeptCollection): Promise<void> {
    const collection = this.connection.collection(name);
    await collection.deleteMany({}, { comment: COMMENT });
    if (indexes.length > 0) await collection.createIndexes([...indexes], { comment: COMMENT });
    if (documents.length > 0)
      await collection.insertMany(documents as OptionalUnlessRequiredId<StoredDocument>[], {
        ordered: false,
        comment: COMMENT,
      });
  }
}

async function namesIn(connection: MongoConnection): Promise<string[]> {
  const listed = await connection.db.listCollections({}, { nameOnly: true, comment: COMMENT }).toArray();
  return listed.map(({ name }) => name).filter((name) => !name.startsWith('system.'));
}

async function kept(connection: MongoConnection, name: string): Promise<KeptCollection> {
  const collection = connection.collection(name);
  const documents = await collection.find({}, { comment: COMMENT }).toArray();
  const listed = await collection.listIndexes({ comment: COMMENT }).toArray();
  const indexes = listed
    .filter((index) => index.name !== '_id_')
    .map(({ v: _v, ns: _ns, ...index }) => index as unknown as IndexDescription);
  return { name, documents, indexes };
}
