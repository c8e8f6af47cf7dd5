import { mongoError, notImplemented } from '../errors.js';
import type { CommandContext } from '../server/command.js';
import { VIEW_CATALOG } from '../storage/catalog.js';
import type { Collection } from '../storage/collection.js';
import { readCollation } from './arguments.js';
import { Selection } from './selection.js';
import type { StoredDocument } from '../storage/stored-document.js';
import type { Document } from '../bson/document.js';
import { drain } from '../server/drain.js';

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

/** Which documents a statement writes to. */
export interface WriteStatement {
  readonly filter: Document;
  readonly multi: boolean;
  readonly sort?: Document | undefined;
  readonly hint?: unknown;
  /** Where the statement's own collation stands, if it has one. */
  readonly place: Document;
  readonly variables?: Document | undefined;
}

/** How often a write starts again when others change what it found, before it gives up with 112. */
export const MAX_ATTEMPTS = 100;

export const changedMeanwhile = (): Error =>
  mongoError(112, 'the documents of this write kept changing; please retry it');

export const selectWritten = (
  ctx: CommandContext,
  collection: Collection | undefined,
  { filter, multi, sort, hint, place, variables }: WriteStatement,
): Selection => {
  const collation = readCollation(place, collection?.options);
  return new Selection(ctx, collection, { filter, sort, hint, limit: multi ? 0 : 1, collation, variables });
};

/** Shows the documents as they are now: others may have written since the scan began. False when the only one has changed. */
export async function visitWritten(
  ctx: CommandContext,
  selection: Selection,
  visit: (current: StoredDocument) => void,
): Promise<boolean> {
  let outdated = false;
  await drain(ctx.operation, await selection.rows(), (found) => {
    const current = selection.collection.record(found.recordId);
    if (current && (current === found || selection.filter.matches(current.document))) visit(current);
    else outdated = true;
  });
  return !outdated || selection.spec.limit === 0;
}
