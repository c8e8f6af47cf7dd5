import { BSON, type Document, type Filter } from 'mongodb';
import {
  type OperationContext,
  type ParseRow,
  type ReplacedRow,
  type RowImage,
  RowImages,
  type SchemaCatalogue,
  StoreError,
} from '#data';
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
    { className, objectId, where }: ReplacedRow,
    now: RowImage | null,
    image: RowImage | null,
    operation: OperationContext,
  ): Promise<void> {
    return this.atDatabase(async () => {
      const storage = (await StoredClasses.read(this.catalogue, operation)).storage(className);
      const connection = this.connection.openForChanges(storage, operation.tenant);
      const collection = connection.collection(storage.collection);
      const limits = connection.limits(operation);
      storage.assertPermits(image === null ? 'delete' : now === null ? 'create' : 'update');
      if (now === null) {
        if (image !== null) await collection.insertOne(toDocument(image) as DriverDocument, limits);
        return;
      }
      const options = { ...limits, ...SIMPLE_COLLATION };
      const named = { _id: storage.idToStorage(objectId) };
      const filter = { $and: [named, classWhereToQuery(where, storage)] } as Filter<DriverDocument>;
      const found =
        image === null
          ? (await collection.deleteOne(filter, options)).deletedCount
          : (await collection.replaceOne(filter, toDocument(image), options)).matchedCount;
      if (found === 0) throw new StoreError('rejected', { advice: 'the row is not what it was' });
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

const toDocument = (image: RowImage): Document => BSON.deserialize(Buffer.from(image, 'base64'), EXACT);

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
  const document = toDocument(image);
  if (!Object.hasOwn(document, column)) return null;
  return Buffer.from(BSON.serialize({ value: document[column] })).toString('base64');
}
