import { compareValues } from '../bson/compare.js';
import { isDocument, type Document } from '../bson/document.js';
import { mongoError } from '../errors.js';
import type { CommandContext, CommandHandler } from '../server/command.js';
import { Reader } from '../server/cursors.js';
import { VIEW_CATALOG } from '../storage/catalog.js';
import type { Collection } from '../storage/collection.js';
import type { CollectionIndex } from '../storage/collection-index.js';
import { normaliseIndex, type IndexSpec } from '../storage/index-spec.js';
import { shellText } from '../storage/shell-text.js';
import { collectionName, documentArray, optionalCount, optionalDocument } from './arguments.js';
import { cursorReply, encodeRows } from './batches.js';
import { insertTarget, refuseView } from './write-target.js';

export const createIndexes: CommandHandler = (command, ctx) => {
  const name = collectionName(command, 'createIndexes');
  const specs = documentArray(command, 'indexes').map(normaliseIndex);
  if (specs.length === 0) throw mongoError(2, 'Must specify at least one index to create');
  const { store } = ctx.server;
  const before = store.catalog.find(ctx.db, name);
  const collection = insertTarget(ctx, ctx.db, name);
  const numIndexesBefore = collection.indexes.length;
  for (const spec of specs) {
    const complete = withCollation(spec, collection);
    if (!collection.addIndex(complete)) continue;
    store.publish([{ kind: 'createIndexes', ns: collection.ns, uuid: collection.uuid, spec: complete }]);
  }
  const numIndexesAfter = collection.indexes.length;
  return {
    numIndexesBefore,
    numIndexesAfter,
    createdCollectionAutomatically: before === undefined,
    ...(numIndexesAfter === numIndexesBefore ? { note: 'all indexes already exist' } : {}),
  };
};

/** An index compares as its collection does, unless it says otherwise; the order of bytes is not written down. */
function withCollation(spec: IndexSpec, collection: Collection): IndexSpec {
  const { collation = collection.options['collation'], ...rest } = spec;
  const ordered = isDocument(collation) && collation['locale'] !== 'simple';
  return ordered ? { ...(rest as IndexSpec), collation } : (rest as IndexSpec);
}

/** An index by its name or its key pattern. */
export function findIndex(collection: Collection, wanted: unknown): CollectionIndex | undefined {
  return collection.indexes.find(({ spec }) =>
    typeof wanted === 'string' ? spec.name === wanted : compareValues(spec.key, wanted) === 0,
  );
}

export const dropIndexes: CommandHandler = (command, ctx) => {
  const collection = requireCollection(ctx, collectionName(command, ctx.name));
  const nIndexesWas = collection.indexes.length;
  const { index } = command;
  if (index === undefined)
    throw mongoError(40414, "BSON field 'dropIndexes.index' is missing but a required field");
  for (const found of index === '*' ? collection.indexes.slice(1) : chooseIndexes(collection, index)) {
    collection.dropIndex(found.spec.name);
    ctx.server.store.publish([
      { kind: 'dropIndexes', ns: collection.ns, uuid: collection.uuid, spec: found.spec },
    ]);
  }
  return { nIndexesWas, ...(index === '*' ? { msg: 'non-_id indexes dropped for collection' } : {}) };
};

function chooseIndexes(collection: Collection, index: unknown): CollectionIndex[] {
  return (Array.isArray(index) ? index : [index]).map((wanted: unknown) => {
    const found = findIndex(collection, wanted);
    if (!found) {
      throw mongoError(
        27,
        typeof wanted === 'string'
          ? `index not found with name [${wanted}]`
          : `can't find index with key: ${shellText(wanted)}`,
      );
    }
    if (found.spec.name === '_id_') throw mongoError(72, 'cannot drop _id index');
    return found;
  });
}

export const listIndexes: CommandHandler = async (command, ctx) => {
  const name = collectionName(command, 'listIndexes');
  const collection = requireCollection(ctx, name);
  const specs: Document[] = collection.indexes.map(({ spec }) => spec);
  const cursor = optionalDocument(command, 'cursor') ?? {};
  return cursorReply(ctx, `${ctx.db}.${name}`, encodeRows(specs), new Reader(ctx.operation), {
    batchSize: optionalCount(cursor, 'batchSize') ?? Number.MAX_SAFE_INTEGER,
  });
};

/** Errors: 26 when the collection is missing, 166 for a view, 73 for the list of views. */
export function requireCollection(ctx: CommandContext, name: string): Collection {
  const collection = ctx.workspace.find(ctx.db, name);
  if (!collection) throw mongoError(26, `ns does not exist: ${ctx.db}.${name}`);
  refuseView(collection);
  if (name === VIEW_CATALOG) throw mongoError(73, `cannot be done with '${ctx.db}.${name}'`);
  return collection;
}
