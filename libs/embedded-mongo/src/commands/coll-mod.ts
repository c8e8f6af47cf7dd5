import { Long } from 'bson';
import type { Document } from '../bson/document.js';
import { keyOfAll } from '../bson/key-string.js';
import { toDouble } from '../bson/number.js';
import { badValue, mongoError } from '../errors.js';
import type { CommandContext, CommandHandler } from '../server/command.js';
import type { Collection } from '../storage/collection.js';
import type { CollectionIndex } from '../storage/collection-index.js';
import { normaliseIndex } from '../storage/index-spec.js';
import { shellText } from '../bson/shell-text.js';
import { collectionName, flag, optionalCount, optionalDocument, optionalNumber } from './arguments.js';
import { collectionOptions, roundCappedSize, viewDefinition } from './catalog-commands.js';
import { requireCollection, findIndex } from './index-commands.js';

export const collMod: CommandHandler = (command, ctx) => {
  const name = collectionName(command, 'collMod');
  const view = ctx.workspace.find(ctx.db, name);
  if (view?.view) return modifyView(ctx, view, command);
  const collection = requireCollection(ctx, name);
  if (command['viewOn'] !== undefined || command['pipeline'] !== undefined) {
    throw mongoError(72, `${collection.fullName} is not a view`);
  }
  const changed = { ...collectionOptions(command, ctx), ...newLimits(collection, command) };
  if (changed['collation'] !== undefined) {
    throw mongoError(72, 'the collation of a collection cannot be changed');
  }
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
  const seconds = optionalNumber(change, 'expireAfterSeconds');
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
    for (const key of index.listKeys(document)?.keys ?? []) {
      const id = keyOfAll(key, index.definition.collation);
      const other = seen.get(id);
      if (other) violations.push({ ids: [other['_id'], document['_id']] });
      else seen.set(id, document);
    }
  }
  if (violations.length === 0) return;
  throw mongoError(
    359,
    'Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.',
    { violations },
  );
}
