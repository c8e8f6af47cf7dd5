import { BSON, type Document, type Filter } from 'mongodb';
import { type OperationContext, type ParseRow, type RowImage, RowImages, type SchemaCatalogue } from '#data';
import type { Where } from '#policy';
import { SIMPLE_COLLATION } from '../connection/collation.js';
import type { DriverDocument, MongoConnection } from '../connection/mongo-connection.js';
import { asStoreOperation } from '../errors.js';
import { classWhereToQuery } from '../query/where-to-query.js';
import type { ClassStorage } from '../storage/class-storage.js';
import { readDocument } from '../storage/documents.js';
import { StoredClasses } from '../storage/stored-classes.js';

/** What is read and written keeps every type that the document has: numbers do not change theirs. */
const EXACT = { promoteValues: false, promoteLongs: false, promoteBuffers: false, bsonRegExp: true } as const;

/** Documents as their bytes. */
export class MongoRowImages extends RowImages {
  /** @param operate runs every operation */
  constructor(
    private readonly connection: MongoConnection,
    private readonly catalogue: SchemaCatalogue,
    private readonly operate: <T>(operation: () => Promise<T>) => Promise<T> = (operation) => operation(),
  ) {
    super();
  }

  find(
    className: string,
    objectIds: readonly string[],
    where: Where,
    operation: OperationContext,
  ): Promise<ReadonlyMap<string, RowImage>> {
    return this.atDatabase(async () => {
      const storage = (await StoredClasses.read(this.catalogue, operation)).storage(className);
      const connection = this.connection.holding(storage, operation.tenant);
      const ids = objectIds.map((objectId) => storage.idToStorage(objectId));
      const named = { _id: ids.length === 1 ? ids[0] : { $in: ids } };
      const found: unknown[] = await connection
        .collection(storage.collection)
        .find({ $and: [named, classWhereToQuery(where, storage)] } as Filter<DriverDocument>, {
          ...connection.limits(operation),
          ...SIMPLE_COLLATION,
          batchSize: ids.length + 1,
          raw: true,
        })
        .toArray();
      return new Map(
        (found as Uint8Array[]).map((bytes) => {
          const { _id: id } = readDocument(bytes, storage.bson);
          return [storage.idFromStorage(id), toImage(bytes)];
        }),
      );
    });
  }

  replace(
    { className, objectId }: { readonly className: string; readonly objectId: string },
    now: RowImage | null,
    image: RowImage | null,
    operation: OperationContext,
  ): Promise<void> {
    return this.atDatabase(async () => {
      const storage = (await StoredClasses.read(this.catalogue, operation)).storage(className);
      const connection = this.connection.openForChanges(storage, operation.tenant);
      const collection = connection.collection(storage.collection);
      const options = connection.limits(operation);
      if (image === null) {
        storage.assertPermits('delete');
        await collection.deleteOne(
          { _id: storage.idToStorage(objectId) as string },
          { ...options, ...SIMPLE_COLLATION },
        );
        return;
      }
      storage.assertPermits(now === null ? 'create' : 'update');
      const document = BSON.deserialize(Buffer.from(image, 'base64'), EXACT) as DriverDocument;
      if (now === null) await collection.insertOne(document, options);
      else await collection.replaceOne({ _id: document._id }, document, { ...options, ...SIMPLE_COLLATION });
    });
  }

  async areAlike(
    className: string,
    one: RowImage,
    other: RowImage,
    operation: OperationContext,
    fields?: readonly string[],
  ): Promise<boolean> {
    if (one === other) return true;
    if (!fields) return false;
    const storage = (await StoredClasses.read(this.catalogue, operation)).storage(className);
    const columns = listColumns(storage, fields);
    return columns.every((column) => bytesOf(one, column) === bytesOf(other, column));
  }

  async toRow(className: string, image: RowImage, operation: OperationContext): Promise<ParseRow> {
    const storage = (await StoredClasses.read(this.catalogue, operation)).storage(className);
    return storage.toRow(readDocument(Buffer.from(image, 'base64'), storage.bson));
  }

  private atDatabase<T>(work: () => Promise<T>): Promise<T> {
    return this.operate(() => asStoreOperation(undefined, work));
  }
}

/** A row of these bytes. */
export const toImage = (bytes: Uint8Array): RowImage => Buffer.from(bytes).toString('base64');

/** The columns of the fields, and those that every write of Parse's changes. */
function listColumns(storage: ClassStorage, fields: readonly string[]): string[] {
  const stamps = Object.keys(storage.createStamp(new Date(0)));
  const named = fields.flatMap((field) =>
    field === 'ACL' ? storage.rightsColumns : [storage.column(field)],
  );
  return [...new Set([...stamps, ...named])];
}

/** The value of a column as text that is equal for equal bytes alone. */
function bytesOf(image: RowImage, column: string): string | null {
  const document: Document = BSON.deserialize(Buffer.from(image, 'base64'), EXACT);
  if (!Object.hasOwn(document, column)) return null;
  return Buffer.from(BSON.serialize({ value: document[column] })).toString('base64');
}
