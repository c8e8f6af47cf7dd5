import { Long } from 'bson';
import type { Document } from '../bson/document.js';
import type { CommandHandler } from '../server/command.js';
import type { Collection } from '../storage/collection.js';
import { collectionName } from './arguments.js';
import { requireCollection } from './index-commands.js';
import { refuseView } from './write-target.js';

/** Size and index figures of one collection. */
export function collectionStats(namespace: string, collection: Collection | undefined): Document {
  const size = collection?.dataBytes ?? 0;
  const n = collection?.count ?? 0;
  const indexes = collection?.indexes ?? [];
  return {
    ns: namespace,
    size,
    count: n,
    ...(n > 0 ? { avgObjSize: Math.round(size / n) } : {}),
    numOrphanDocs: 0,
    storageSize: size,
    freeStorageSize: 0,
    capped: collection?.capped === true,
    ...(collection?.capped
      ? { max: collection.options['max'] ?? 0, maxSize: collection.options['size'] }
      : {}),
    nindexes: indexes.length,
    indexDetails: {},
    indexBuilds: [],
    totalIndexSize: 0,
    totalSize: size,
    // Keys share their values with the documents, so an index has no size of its own.
    indexSizes: Object.fromEntries(indexes.map(({ spec }) => [spec.name, 0])),
    scaleFactor: 1,
  };
}

export const collStats: CommandHandler = (command, ctx) => {
  const name = collectionName(command, ctx.name);
  const collection = ctx.server.store.catalog.find(ctx.db, name);
  if (collection) refuseView(collection);
  return collectionStats(`${ctx.db}.${name}`, collection);
};

export const dbStats: CommandHandler = (_command, ctx) => {
  const everything = ctx.server.store.catalog.collections(ctx.db);
  const collections = everything.filter(({ view }) => !view);
  const total = (of: (collection: Collection) => number): number =>
    collections.reduce((sum, one) => sum + of(one), 0);
  const objects = total((one) => one.count);
  const dataSize = total((one) => one.dataBytes);
  return {
    db: ctx.db,
    collections: Long.fromNumber(collections.length),
    views: Long.fromNumber(everything.length - collections.length),
    objects: Long.fromNumber(objects),
    avgObjSize: objects > 0 ? dataSize / objects : 0,
    dataSize,
    storageSize: dataSize,
    indexes: Long.fromNumber(total((one) => one.indexes.length)),
    indexSize: 0,
    totalSize: dataSize,
    scaleFactor: Long.ONE,
    fsUsedSize: 0,
    fsTotalSize: 0,
  };
};

/** Checks that every index holds exactly the keys of the documents. */
export const validate: CommandHandler = (command, ctx) => {
  const collection = requireCollection(ctx, collectionName(command, 'validate'));
  const errors: string[] = [];
  const keysPerIndex: Document = {};
  for (const index of collection.indexes) {
    let keys = 0;
    for (const stored of collection.snapshotRecords().range()) {
      ctx.operation.tick();
      keys += index.listKeys(stored.document)?.keys.length ?? 0;
    }
    keysPerIndex[index.spec.name] = index.size;
    if (keys !== index.size)
      errors.push(`index ${index.spec.name} holds ${index.size} keys instead of ${keys}`);
  }
  return {
    ns: collection.fullName,
    uuid: collection.uuid,
    nInvalidDocuments: 0,
    nNonCompliantDocuments: 0,
    nrecords: collection.count,
    nIndexes: collection.indexes.length,
    keysPerIndex,
    valid: errors.length === 0,
    warnings: [],
    errors,
    extraIndexEntries: [],
    missingIndexEntries: [],
    corruptRecords: [],
    repaired: false,
  };
};
