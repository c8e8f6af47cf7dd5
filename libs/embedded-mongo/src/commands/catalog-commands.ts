import { Long } from 'bson';
import { refuseOthers } from '../aggregate/arguments.js';
import { compilePipeline } from '../aggregate/pipeline.js';
import { compileCollation } from '../bson/collation.js';
import { compareValues } from '../bson/compare.js';
import type { Document } from '../bson/document.js';
import { keyOfAll } from '../bson/keys.js';
import { coerceInteger, toDouble } from '../bson/number.js';
import { shellText } from '../bson/text.js';
import { badValue, mongoError, notImplemented, requireOneOf } from '../errors.js';
import { permits } from '../server/access.js';
import type { CommandContext, CommandHandler } from '../server/server-state.js';
import { type Collection, VIEW_CATALOG } from '../storage/catalog.js';
import type { CollectionIndex } from '../storage/collection-index.js';
import { normaliseIndex } from '../storage/index-spec.js';
import {
  checkTypes,
  collectionName,
  documentOr,
  flag,
  optionalCount,
  optionalDocument,
  optionalInteger,
  requireFields,
  splitNamespace,
} from './arguments.js';
import { listReply } from './cursor-commands.js';
import { findIndex, requireCollection } from './index-commands.js';
import { queryContext } from './query-context.js';
import { resolveSource, viewOptions } from './views.js';
import { plainFilter, refuseView } from './write-target.js';

/** What `create` stores as the collection's options. */
const stored =
  'validator validationLevel validationAction collation changeStreamPreAndPostImages capped size max timeseries'.split(
    ' ',
  );
/** Kinds of collections that would behave differently from what their option promises. */
const refused = ['clusteredIndex', 'encryptedFields'];

export const create: CommandHandler = (command, ctx) => {
  const name = collectionName(command, 'create');
  for (const option of refused) {
    if (command[option] === undefined || command[option] === false) continue;
    throw notImplemented(`the create option '${option}'`);
  }
  const view = (command['viewOn'] ?? command['pipeline'] ?? undefined) !== undefined;
  if (view && ctx.transaction) throw mongoError(263, 'Cannot create a view in a multi-document transaction.');
  if (name === VIEW_CATALOG) throw mongoError(73, `cannot create '${ctx.db}.${name}'`);
  const options = view ? viewDefinition(command, name, ctx) : collectionOptions(command, ctx);
  // One that is there with the same options is no error, as since 7.0.
  const existing = ctx.workspace.find(ctx.db, name);
  if (!existing || compareValues(existing.options, options) !== 0)
    indexMeasurements(ctx, ctx.workspace.create(ctx.db, name, options));
  return {};
};

/** Measurements of one kind stand together in an index that MongoDB makes by itself. */
function indexMeasurements({ workspace }: CommandContext, collection: Collection): void {
  const { metaField: meta, timeField: time } = (collection.options['timeseries'] ?? {}) as Record<
    string,
    string
  >;
  if (meta === undefined || time === undefined) return;
  workspace.addIndex(collection, { v: 2, key: { [meta]: 1, [time]: 1 }, name: `${meta}_1_${time}_1` });
}

/** The options of a view. Errors: those of its definition and of the stages in it. */
function viewDefinition(command: Document, name: string, ctx: CommandContext): Document {
  const options = viewOptions(command, name, stored, ctx);
  const { collection } = resolveSource(ctx.workspace, ctx.db, String(options['viewOn']));
  compilePipeline(options['pipeline'] as Document[], queryContext(ctx, ctx.operation, collection));
  return options;
}

/** The options of a command that are stored with the collection. Errors: those of a validator or collation, 72, 2. */
export function collectionOptions(command: Document, ctx: CommandContext): Document {
  const options: Document = {};
  for (const option of stored)
    if ((command[option] ?? undefined) !== undefined) options[option] = command[option];
  const validator = optionalDocument(options, 'validator');
  if (validator) plainFilter(validator, ctx, { clusterTime: ctx.clusterTime });
  requireOneOf(options['validationLevel'], [undefined, 'off', 'strict', 'moderate'], 'validationLevel');
  requireOneOf(options['validationAction'], [undefined, 'error', 'warn', 'errorAndLog'], 'validationAction');
  const collation = optionalDocument(options, 'collation');
  const compiled = collation && compileCollation(collation);
  if (compiled) options['collation'] = compiled.spec;
  else delete options['collation'];
  return { ...options, ...limits(command), ...measurements(command, ctx) };
}

/** The limits of a capped collection, in MongoDB's steps of 256 bytes. Errors: 72 for one without the other. */
function limits(command: Document): Document {
  const size = optionalCount(command, 'size');
  const max = optionalCount(command, 'max');
  if (!flag(command, 'capped')) {
    if (command['size'] === undefined && command['max'] === undefined) return {};
    throw mongoError(72, "'size' and 'max' are for a capped collection");
  }
  if (!size) throw mongoError(72, "the 'size' field is required when 'capped' is true");
  return { capped: true, size: roundCappedSize(size), ...(max === undefined ? {} : { max }) };
}

const roundCappedSize = (size: number): number => Math.max(4096, Math.ceil(size / 256) * 256);

/** Errors: those of `readTimeseries`, 72 beside options that measurements have not. */
function measurements(command: Document, ctx: CommandContext): Document {
  const timeseries = optionalDocument(command, 'timeseries');
  const kept = optionalCount(command, 'expireAfterSeconds');
  if (!timeseries) {
    if (kept === undefined || ctx.name !== 'create') return {};
    throw mongoError(72, "'expireAfterSeconds' is only supported on time-series collections");
  }
  const other = ['validator', 'validationLevel', 'validationAction', 'capped', 'idIndex'].find(
    (option) => command[option] !== undefined,
  );
  if (other !== undefined)
    throw mongoError(72, `the option '${other}' is not valid for a time-series collection`);
  const options = readTimeseries(timeseries);
  if (ctx.name === 'create' && [options['timeField'], '_id'].includes(options['metaField'] as string))
    throw mongoError(72, "'metaField' cannot be '_id' or the same as 'timeField'");
  return { timeseries: options, ...(kept === undefined ? {} : { expireAfterSeconds: kept }) };
}

/** How many seconds a bucket spans, by its granularity. */
const spans: Readonly<Record<string, number>> = { seconds: 3600, minutes: 86_400, hours: 2_592_000 };
const longestSpan = 31_536_000;

/** The complete options of measurements. Errors: 14, 2, 72, 40414, 40415. */
function readTimeseries(given: Document): Document {
  refuseOthers(
    given,
    ['timeField', 'metaField', 'granularity', 'bucketRoundingSeconds', 'bucketMaxSpanSeconds'],
    'timeseries',
    40415,
  );
  const { timeField, metaField, granularity } = given;
  requireFields(given, 'create.timeseries', ['timeField']);
  const texts = { timeField: 'string', metaField: 'string', granularity: 'string' };
  checkTypes(given, { ...texts, bucketRoundingSeconds: 'number', bucketMaxSpanSeconds: 'number' });
  for (const name of Object.keys(texts)) {
    const value = (given[name] ?? '') as string;
    if (value.includes('\0')) throw badValue(`'${name}' must not contain a null byte`);
    if (value.includes('.')) throw mongoError(72, `'${name}' must be a top-level field`);
  }
  const [rounding, span] = ['bucketRoundingSeconds', 'bucketMaxSpanSeconds'].map((name) => {
    const seconds = (given[name] ?? undefined) === undefined ? undefined : coerceInteger(given[name]);
    if (seconds !== undefined && !(seconds >= 1 && seconds <= longestSpan))
      throw badValue(`'${name}' must be between 1 and ${longestSpan}`);
    return seconds;
  });
  const grain = (granularity ?? 'seconds') as string;
  requireOneOf(grain, Object.keys(spans), 'timeseries.granularity');
  const fits = given['granularity']
    ? (span ?? spans[grain]) === spans[grain] && !rounding
    : span === rounding;
  if (!fits) throw mongoError(72, "'bucketMaxSpanSeconds' does not fit the options beside it");
  return {
    timeField,
    ...((metaField ?? undefined) === undefined ? {} : { metaField }),
    ...(rounding === undefined
      ? { granularity: grain, bucketMaxSpanSeconds: spans[grain] }
      : { bucketRoundingSeconds: rounding, bucketMaxSpanSeconds: span }),
  };
}

export const drop: CommandHandler = (command, ctx) => {
  const collection = ctx.server.store.catalog.find(ctx.db, collectionName(command, 'drop'));
  // As since 7.0: dropping what is not there is no error.
  if (!collection) return {};
  dropCollection(ctx, collection);
  const nIndexesWas = collection.view ? undefined : collection.listed.length;
  return { ...(nIndexesWas === undefined ? {} : { nIndexesWas }), ns: collection.fullName };
};

function dropCollection(ctx: CommandContext, { ns, uuid, fullName, view }: Collection): void {
  const { store, cursors } = ctx.server;
  store.catalog.drop(ns.db, ns.coll);
  store.publish([{ kind: 'drop', ns, uuid, ...(view ? { view: true } : {}) }]);
  cursors.orphan(fullName);
}

export const dropDatabase: CommandHandler = (_command, ctx) => {
  const { store } = ctx.server;
  const collections = store.catalog.collections(ctx.db);
  for (const collection of collections) dropCollection(ctx, collection);
  if (collections.length > 0) store.publish([{ kind: 'dropDatabase', db: ctx.db }]);
  return {};
};

export const renameCollection: CommandHandler = (command, ctx) => {
  const from = splitNamespace(command['renameCollection']);
  const to = splitNamespace(command['to']);
  const { store } = ctx.server;
  const collection = store.catalog.find(from.db, from.coll);
  if (!collection) throw mongoError(26, `Source collection ${from.db}.${from.coll} does not exist`);
  refuseView(collection);
  if (from.db === to.db && from.coll === to.coll) throw mongoError(20, "Can't rename a collection to itself");
  const target = store.catalog.find(to.db, to.coll);
  const dropTarget = flag(command, 'dropTarget');
  if (target && !dropTarget) throw mongoError(48, 'target namespace exists');
  if (target) dropCollection(ctx, target);
  const { ns, uuid } = collection;
  store.catalog.rename(collection, to.db, to.coll);
  store.publish([{ kind: 'rename', ns, uuid, to, dropTarget: target !== undefined }]);
  return {};
};

export const listCollections: CommandHandler = async (command, ctx) => {
  const filter = plainFilter(documentOr(command, 'filter'), ctx);
  const { catalog } = ctx.server.store;
  const views = catalog.viewCatalog(ctx.db);
  const nameOnly = flag(command, 'nameOnly');
  const found = [...catalog.collections(ctx.db), ...(views ? [views] : [])]
    .map(describeCollection)
    .map((entry) => (nameOnly ? { name: entry['name'], type: entry['type'] } : entry))
    .filter((entry) => filter.matches(entry));
  return listReply(ctx, `${ctx.db}.$cmd.listCollections`, found, command);
};

/** The entry of a collection or view in the answer of `listCollections`. */
function describeCollection({ ns, options, uuid, view }: Collection): Document {
  if (view) return { name: ns.coll, type: 'view', options, info: { readOnly: true } };
  return {
    name: ns.coll,
    type: options['timeseries'] === undefined ? 'collection' : 'timeseries',
    options,
    info: { readOnly: false, uuid },
    idIndex: { v: 2, key: { _id: 1 }, name: '_id_' },
  };
}

export const listDatabases: CommandHandler = (command, ctx) => {
  const filter = plainFilter(documentOr(command, 'filter'), ctx);
  const { catalog } = ctx.server.store;
  const { user } = ctx.client;
  // A user hears of the databases that the user may read.
  const isVisible = (name: string): boolean =>
    !ctx.server.users || (user !== undefined && permits(user, 'read', name));
  const databases = catalog
    .databaseNames()
    .map((name) => {
      const bytes = catalog.collections(name).reduce((sum, collection) => sum + collection.dataBytes, 0);
      return { name, sizeOnDisk: Long.fromNumber(bytes), empty: false };
    })
    .filter((entry) => isVisible(entry.name) && filter.matches(entry));
  if (flag(command, 'nameOnly')) return { databases: databases.map(({ name }) => ({ name })) };
  const total = databases.reduce((sum, { sizeOnDisk }) => sum.add(sizeOnDisk), Long.ZERO);
  return { databases, totalSize: total, totalSizeMb: total.div(1024 * 1024) };
};

export const collMod: CommandHandler = (command, ctx) => {
  const name = collectionName(command, 'collMod');
  const view = ctx.workspace.find(ctx.db, name);
  if (view?.view) return modifyView(ctx, view, command);
  const collection = requireCollection(ctx, name);
  if (command['viewOn'] !== undefined || command['pipeline'] !== undefined)
    throw mongoError(72, `${collection.fullName} is not a view`);
  const changed = { ...collectionOptions(command, ctx), ...newLimits(collection, command) };
  if (changed['collation'] !== undefined)
    throw mongoError(72, 'the collation of a collection cannot be changed');
  const { store } = ctx.server;
  const change = optionalDocument(command, 'index');
  collection.options = { ...collection.options, ...changed };
  const { ns, uuid, options } = collection;
  if (!change || Object.keys(changed).length > 0) store.publish([{ kind: 'modify', ns, uuid, options }]);
  return change ? modifyIndex(ctx, collection, change, command) : {};
};

/** Errors: 72 for options that only collections have, and those of a view's definition. */
function modifyView(ctx: CommandContext, view: Collection, command: Document): Document {
  const own = ['viewOn', 'pipeline'];
  const other = ['index', 'validator', 'validationLevel', 'validationAction', 'collation'].find(
    (option) => command[option] !== undefined,
  );
  if (other !== undefined) throw mongoError(72, `the option '${other}' is not valid for a view`);
  if (own.every((option) => command[option] === undefined)) return {};
  const missing = own.find((option) => command[option] === undefined);
  if (missing !== undefined)
    throw mongoError(72, `Must specify both 'viewOn' and 'pipeline' when modifying a view`);
  const { collation } = view.options;
  view.options = viewDefinition({ ...command, ...(collation ? { collation } : {}) }, view.ns.coll, ctx);
  ctx.server.store.publish([{ kind: 'modify', ns: view.ns, uuid: view.uuid, options: view.options }]);
  return {};
}

/** New limits of a capped collection. Errors: 72 for any other collection. */
function newLimits(collection: Collection, command: Document): Document {
  const size = optionalCount(command, 'cappedSize');
  const max = optionalCount(command, 'cappedMax');
  if (size === undefined && max === undefined) return {};
  if (!collection.capped) throw mongoError(72, 'Collection must be capped');
  return {
    ...(size === undefined ? {} : { size: roundCappedSize(size) }),
    ...(max === undefined ? {} : { max }),
  };
}

function modifyIndex(
  ctx: CommandContext,
  collection: Collection,
  change: Document,
  command: Document,
): Document {
  const index = findIndex(collection, change['name'] ?? change['keyPattern']);
  if (!index) {
    const wanted = shellText(change['name'] ?? change['keyPattern']);
    throw mongoError(27, `cannot find index ${wanted} for ns ${collection.fullName}`);
  }
  if (flag(change, 'hidden') && index.spec.name === '_id_') throw badValue('cannot hide _id index');
  const spec = { ...index.spec };
  const reply: Document = {};
  for (const option of ['hidden', 'prepareUnique']) {
    if (change[option] === undefined || flag(change, option) === (spec[option] === true)) continue;
    reply[`${option}_old`] = spec[option] === true;
    reply[`${option}_new`] = spec[option] = flag(change, option);
  }
  const seconds = optionalInteger(change, 'expireAfterSeconds');
  if (seconds !== undefined) {
    if (spec['expireAfterSeconds'] !== undefined)
      reply['expireAfterSeconds_old'] = Long.fromNumber(toDouble(spec['expireAfterSeconds']));
    spec['expireAfterSeconds'] = seconds;
    reply['expireAfterSeconds_new'] = Long.fromNumber(seconds);
  }
  if (flag(change, 'unique') && spec['unique'] !== true) {
    refuseDuplicates(collection, index);
    if (flag(command, 'dryRun')) return {};
    spec['unique'] = true;
    reply['unique_new'] = true;
  }
  collection.changeIndex(normaliseIndex(spec));
  ctx.server.store.publish([{ kind: 'modifyIndex', ns: collection.ns, uuid: collection.uuid, spec }]);
  return reply;
}

/** Errors: 359 with the documents that stand against a unique index. */
function refuseDuplicates(collection: Collection, index: CollectionIndex): void {
  const seen = new Map<string, Document>();
  const violations: Document[] = [];
  for (const { document } of collection.snapshotRecords().range()) {
    for (const key of index.definition.listKeys(document)?.keys ?? []) {
      const id = keyOfAll(key, index.definition.collation);
      const other = seen.get(id);
      if (other) violations.push({ ids: [other['_id'], document['_id']] });
      else seen.set(id, document);
    }
  }
  if (violations.length === 0) return;
  throw mongoError(359, 'Cannot convert the index to unique', { violations });
}
