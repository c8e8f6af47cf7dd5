import { mongoError, notImplemented } from '../errors.js';
import type { CommandContext } from '../server/command.js';
import { VIEW_CATALOG } from '../storage/catalog.js';
import type { Collection } from '../storage/collection.js';

/** What a statement does to the documents of its collection. */
export type WriteKind = 'insert' | 'change';

/**
 * The collection that a statement writes to; undefined when there is none yet. Errors: 166 for a view, 73 for the list of
 * views, 238 for changes of measurements, 263 for a kind of collection that no transaction may write to.
 */
export function writeTarget(
  ctx: CommandContext,
  db: string,
  coll: string,
  kind: WriteKind,
): Collection | undefined {
  const collection = ctx.workspace.find(db, coll);
  if (coll === VIEW_CATALOG) throw mongoError(73, `cannot write to '${db}.${coll}'`);
  if (!collection) return undefined;
  refuseView(collection);
  const { timeseries } = collection.options;
  if (timeseries !== undefined && kind === 'change') {
    throw notImplemented('changing or deleting the documents of a time-series collection');
  }
  if (ctx.transaction && (collection.capped || timeseries !== undefined)) {
    throw mongoError(
      263,
      `Writes to the ${collection.capped ? 'capped' : 'time-series'} collection ${collection.fullName} are not allowed in transactions.`,
    );
  }
  return collection;
}

/** The collection that documents are inserted into, created when it is missing. Errors: those of `writeTarget`. */
export function insertTarget(ctx: CommandContext, db: string, coll: string): Collection {
  return writeTarget(ctx, db, coll, 'insert') ?? ctx.workspace.obtain(db, coll);
}

/** Errors: 166 for a view. */
export function refuseView(collection: Collection): void {
  if (collection.view) {
    throw mongoError(166, `Namespace ${collection.fullName} is a view, not a collection`);
  }
}
