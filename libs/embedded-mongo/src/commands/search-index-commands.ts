import { ObjectId } from 'bson';
import { getField, isDocument, type Document } from '../bson/document.js';
import { mongoError } from '../errors.js';
import { searchNotEnabled } from '../search/faults.js';
import { readSearchIndex, type SearchIndex } from '../search/search-index.js';
import type { CommandContext, CommandHandler } from '../server/command.js';
import type { Collection } from '../storage/collection.js';
import { collectionName, documentArray } from './arguments.js';
import { requireCollection } from './index-commands.js';

/** Errors: 31082 where search is off, 26 without the collection, 68 for a name in use by another definition. */
export const createSearchIndexes: CommandHandler = (command, ctx) => {
  const collection = requireSearched(command, ctx, 'createSearchIndexes');
  const wanted = documentArray(command, 'indexes').map((spec) =>
    readSearchIndex(spec, new ObjectId().toHexString()),
  );
  for (const { name } of wanted) {
    if (collection.searchIndexes.has(name)) throw mongoError(68, `Index already exists with name ${name}`);
  }
  for (const index of wanted) collection.searchIndexes.set(index.name, index);
  return { indexesCreated: wanted.map(({ id, name }) => ({ id, name })) };
};

/** Errors: 27 without the index. */
export const updateSearchIndex: CommandHandler = (command, ctx) => {
  const collection = requireSearched(command, ctx, 'updateSearchIndex');
  const { id, name, type } = chooseSearchIndex(command, collection);
  const spec = { name, type, definition: getField(command, 'definition') };
  collection.searchIndexes.set(name, readSearchIndex(spec, id));
  return {};
};

/** Errors: 27 without the index. */
export const dropSearchIndex: CommandHandler = (command, ctx) => {
  const collection = requireSearched(command, ctx, 'dropSearchIndex');
  collection.searchIndexes.delete(chooseSearchIndex(command, collection).name);
  return {};
};

/** What `$listSearchIndexes` answers. */
export function listSearchIndexes(
  ctx: CommandContext,
  collection: Collection | undefined,
  spec: unknown,
): Document[] {
  if (!ctx.server.search) throw searchNotEnabled('$listSearchIndexes');
  const wanted = isDocument(spec) ? (getField(spec, 'name') ?? getField(spec, 'id')) : undefined;
  return [...(collection?.searchIndexes.values() ?? [])]
    .filter(({ id, name }) => wanted === undefined || wanted === name || wanted === id)
    .map(({ id, name, type, definition }) => ({
      id,
      name,
      type,
      status: 'READY',
      queryable: true,
      latestDefinition: definition,
    }));
}

function requireSearched(command: Document, ctx: CommandContext, name: string): Collection {
  if (!ctx.server.search) throw searchNotEnabled(name);
  return requireCollection(ctx, collectionName(command, name));
}

function chooseSearchIndex(command: Document, collection: Collection): SearchIndex {
  const name = getField(command, 'name');
  const id = getField(command, 'id');
  const found = [...collection.searchIndexes.values()].find(
    (index) => index.name === name || index.id === id,
  );
  if (!found) throw mongoError(27, 'search index not found');
  return found;
}
