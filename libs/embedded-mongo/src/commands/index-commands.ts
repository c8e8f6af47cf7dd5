import { Double, ObjectId } from 'bson';
import { compareValues } from '../bson/compare.js';
import { type Document, getField, isDocument } from '../bson/document.js';
import { toDouble } from '../bson/number.js';
import { shellText } from '../bson/text.js';
import { mongoError, typeMismatch, searchNotEnabled } from '../errors.js';
import type { CommandContext, CommandHandler } from '../server/server-state.js';
import { type Collection, VIEW_CATALOG } from '../storage/catalog.js';
import type { CollectionIndex } from '../storage/collection-index.js';
import { type IndexSpec, normaliseIndex } from '../storage/index-spec.js';
import { collectionName, documentArray, flag, requireFields } from './arguments.js';
import { listReply } from './cursor-commands.js';
import { insertTarget, refuseView } from './write-target.js';
import { readSearchIndex, type SearchIndex } from '../search/search-index.js';

export const createIndexes: CommandHandler = (command, ctx) => {
  const name = collectionName(command, 'createIndexes');
  const specs = documentArray(command, 'indexes').map(normaliseIndex);
  if (specs.length === 0) throw mongoError(2, 'Must specify at least one index to create');
  if (name.startsWith('system.')) throw mongoError(73, `cannot create an index on '${ctx.db}.${name}'`);
  const before = ctx.workspace.find(ctx.db, name);
  const collection = insertTarget(ctx, ctx.db, name);
  const numIndexesBefore = collection.listed.length;
  for (const spec of specs) {
    const complete = withCollation(spec, collection);
    if (collection.options['timeseries'] !== undefined) refuseForMeasurements(complete, collection);
    ctx.workspace.addIndex(collection, complete);
  }
  const numIndexesAfter = collection.listed.length;
  return {
    numIndexesBefore,
    numIndexesAfter,
    createdCollectionAutomatically: before === undefined,
    ...(numIndexesAfter === numIndexesBefore ? { note: 'all indexes already exist' } : {}),
  };
};

/** Errors: 72, 67 for what only the index of a plain collection can be. */
function refuseForMeasurements({ key, ...spec }: IndexSpec, { options }: Collection): void {
  const { metaField } = options['timeseries'] as Document;
  const isMeasured = (field: string): boolean =>
    field !== metaField && !field.startsWith(`${String(metaField)}.`);
  const kinds = Object.entries(key).filter(([field]) => isMeasured(field));
  const only = kinds.some(([field, kind]) => kind === 'hashed' || kind === '2d' || field.endsWith('$**'));
  if (only)
    throw mongoError(67, 'Indexes of this kind are for the metadata of a time-series collection only');
  const partial = spec['partialFilterExpression'];
  const refused =
    spec['unique'] ??
    spec['weights'] ??
    (kinds.length > 0 && spec['sparse'] === true ? true : undefined) ??
    (isDocument(partial) && !Object.keys(partial).some(isMeasured) ? undefined : spec['expireAfterSeconds']);
  if (refused !== undefined)
    throw mongoError(72, 'an index of a time series cannot be unique, text, sparse or expiring');
}

/** An index compares as its collection does, unless it says otherwise; the order of bytes is not written down. */
function withCollation(spec: IndexSpec, collection: Collection): IndexSpec {
  const { collation = collection.options['collation'], ...rest } = spec;
  const ordered = isDocument(collation) && collation['locale'] !== 'simple';
  const kind = spec['weights'] === undefined ? '2d' : 'text';
  if (ordered && Object.values(spec.key).some((one) => one === kind || one === 'text'))
    throw mongoError(67, `${kind} index does not support the collation option`);
  return ordered ? { ...(rest as IndexSpec), collation } : (rest as IndexSpec);
}

/** An index by its name or its key pattern. */
export function findIndex(collection: Collection, wanted: unknown): CollectionIndex | undefined {
  return collection.indexes.find(({ spec }) => fits(spec, wanted));
}

const fits = (spec: IndexSpec, wanted: unknown): boolean =>
  typeof wanted === 'string' ? spec.name === wanted : compareValues(spec.key, wanted) === 0;

export const dropIndexes: CommandHandler = (command, ctx) => {
  const collection = requireCollection(ctx, collectionName(command, ctx.name));
  const nIndexesWas = collection.listed.length;
  const { index } = command;
  requireFields(command, 'dropIndexes', ['index']);
  const all = index === '*' || (Array.isArray(index) && index.includes('*'));
  for (const found of all ? collection.indexes.slice(1) : chooseIndexes(collection, index)) {
    collection.dropIndex(found.spec.name);
    ctx.server.store.publish([
      { kind: 'dropIndexes', ns: collection.ns, uuid: collection.uuid, spec: found.spec },
    ]);
  }
  return { nIndexesWas, ...(index === '*' ? { msg: 'non-_id indexes dropped for collection' } : {}) };
};

function chooseIndexes(collection: Collection, index: unknown): CollectionIndex[] {
  const named: unknown[] = Array.isArray(index) ? index : [index];
  if (!named.every((one) => typeof one === 'string' || (!Array.isArray(index) && isDocument(one))))
    throw typeMismatch("BSON field 'dropIndexes.index' must hold strings");
  return named.map((wanted, i) => {
    const matching = collection.indexes.filter(({ spec }) => fits(spec, wanted));
    if (matching.length > 1) throw mongoError(181, `several indexes found for key: ${shellText(wanted)}`);
    const [found] = named.indexOf(wanted) < i ? [] : matching;
    if (!found) throw mongoError(27, `index not found: ${shellText(wanted)}`);
    if (found.spec.name === '_id_') throw mongoError(72, 'cannot drop _id index');
    return found;
  });
}

export const listIndexes: CommandHandler = async (command, ctx) => {
  const name = collectionName(command, 'listIndexes');
  const collection = requireCollection(ctx, name);
  const wrapped = flag(command, 'includeIndexBuildInfo');
  flag(command, 'includeBuildUUIDs');
  const specs = collection.listed.map(({ spec }): Document => {
    const shown: Document = { ...spec };
    // Bounds are kept as they came, and listed as doubles.
    for (const bound of ['min', 'max'])
      if (spec[bound] !== undefined) shown[bound] = new Double(toDouble(spec[bound]));
    return wrapped ? { spec: shown } : shown;
  });
  return listReply(ctx, `${ctx.db}.${name}`, specs, command);
};

/** Errors: 26 when the collection is missing, 166 for a view, 73 for the list of views. */
export function requireCollection(ctx: CommandContext, name: string): Collection {
  const collection = ctx.workspace.find(ctx.db, name);
  if (!collection) throw mongoError(26, `ns does not exist: ${ctx.db}.${name}`);
  refuseView(collection);
  if (name === VIEW_CATALOG) throw mongoError(73, `cannot be done with '${ctx.db}.${name}'`);
  return collection;
}

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

export const listSearchIndexesCommand: CommandHandler = (command, ctx) => {
  const collection = requireSearched(command, ctx, 'listSearchIndexes');
  return listReply(ctx, collection.fullName, listSearchIndexes(ctx, collection, command), {});
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
