import { Long } from 'bson';
import type { Document } from '../bson/document.js';
import { mongoError, notImplemented } from '../errors.js';
import { compileCollation } from '../bson/collation.js';
import { compileFilter } from '../query/filter.js';
import type { CommandContext, CommandHandler } from '../server/command.js';
import { Reader } from '../server/cursors.js';
import type { Collection } from '../storage/collection.js';
import { collectionName, flag, optionalCount, optionalDocument, splitNamespace } from './arguments.js';
import { cursorReply, encodedRows } from './batches.js';

/** What `create` stores as the collection's options. */
const stored = [
  'validator',
  'validationLevel',
  'validationAction',
  'collation',
  'changeStreamPreAndPostImages',
];
/** Kinds of collections that would behave differently from what their option promises. */
const refused = [
  'viewOn',
  'pipeline',
  'timeseries',
  'capped',
  'clusteredIndex',
  'encryptedFields',
  'expireAfterSeconds',
];

export const create: CommandHandler = (command, ctx) => {
  const name = collectionName(command, 'create');
  for (const option of refused) {
    if (command[option] === undefined || command[option] === false) continue;
    throw notImplemented(`the create option '${option}'`);
  }
  ctx.workspace.create(ctx.db, name, collectionOptions(command, ctx));
  return {};
};

/** The options of a command that are stored with the collection. Errors: those of a validator or collation. */
export function collectionOptions(command: Document, ctx: CommandContext): Document {
  const options: Document = {};
  for (const option of stored) if (command[option] !== undefined) options[option] = command[option];
  const validator = optionalDocument(options, 'validator');
  if (validator) compileFilter(validator, { tick: ctx.operation.tick, now: ctx.now });
  if (options['validationLevel'] === 'moderate') throw notImplemented("validationLevel 'moderate'");
  const collation = optionalDocument(options, 'collation');
  if (collation) options['collation'] = compileCollation(collation)?.spec;
  return options;
}

export const drop: CommandHandler = (command, ctx) => {
  const collection = ctx.server.store.catalog.find(ctx.db, collectionName(command, 'drop'));
  // As since 7.0: dropping what is not there is no error.
  if (!collection) return {};
  dropCollection(ctx, collection);
  return { nIndexesWas: collection.indexes.length, ns: collection.fullName };
};

function dropCollection(ctx: CommandContext, { ns, uuid, fullName }: Collection): void {
  const { store, cursors } = ctx.server;
  store.catalog.drop(ns.db, ns.coll);
  store.publish([{ kind: 'drop', ns, uuid }]);
  cursors.closeWhere((cursor) => cursor.namespace === fullName && cursor.source.kind === 'documents');
}

export const dropDatabase: CommandHandler = (_command, ctx) => {
  const { store } = ctx.server;
  const collections = store.catalog.collections(ctx.db);
  if (collections.length === 0) return {};
  for (const collection of collections) dropCollection(ctx, collection);
  store.publish([{ kind: 'dropDatabase', db: ctx.db }]);
  return { dropped: ctx.db };
};

export const renameCollection: CommandHandler = (command, ctx) => {
  const from = splitNamespace(command['renameCollection']);
  const to = splitNamespace(command['to']);
  const { store } = ctx.server;
  const collection = store.catalog.find(from.db, from.coll);
  if (!collection) throw mongoError(26, `Source collection ${from.db}.${from.coll} does not exist`);
  if (from.db === to.db && from.coll === to.coll) {
    throw mongoError(20, "Can't rename a collection to itself");
  }
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
  const filter = compileFilter(optionalDocument(command, 'filter') ?? {}, {
    tick: ctx.operation.tick,
    now: ctx.now,
  });
  const found = ctx.server.store.catalog
    .collections(ctx.db)
    .map((collection) => ({
      name: collection.ns.coll,
      type: 'collection',
      options: collection.options,
      info: { readOnly: false, uuid: collection.uuid },
      idIndex: { v: 2, key: { _id: 1 }, name: '_id_' },
    }))
    .filter((entry) => filter.matches(entry));
  const shown = flag(command, 'nameOnly') ? found.map(({ name, type }) => ({ name, type })) : found;
  const cursor = optionalDocument(command, 'cursor') ?? {};
  return cursorReply(ctx, `${ctx.db}.$cmd.listCollections`, encodedRows(shown), new Reader(ctx.operation), {
    batchSize: optionalCount(cursor, 'batchSize') ?? Number.MAX_SAFE_INTEGER,
  });
};

export const listDatabases: CommandHandler = (command, ctx) => {
  const filter = compileFilter(optionalDocument(command, 'filter') ?? {}, {
    tick: ctx.operation.tick,
    now: ctx.now,
  });
  const { catalog } = ctx.server.store;
  const databases = catalog
    .databaseNames()
    .map((name) => {
      const bytes = catalog.collections(name).reduce((sum, collection) => sum + collection.dataBytes, 0);
      return { name, sizeOnDisk: Long.fromNumber(bytes), empty: false };
    })
    .filter((entry) => filter.matches(entry));
  if (flag(command, 'nameOnly')) return { databases: databases.map(({ name }) => ({ name })) };
  const total = databases.reduce((sum, { sizeOnDisk }) => sum.add(sizeOnDisk), Long.ZERO);
  return { databases, totalSize: total, totalSizeMb: total.div(1024 * 1024) };
};
