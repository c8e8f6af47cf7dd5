import { type Document, firstKey, isDocument } from '../bson/document.js';
import { createParseError } from '../errors.js';
import { compileProjection } from '../projection/projection.js';
import { compileFilter } from '../query/filter.js';
import type { CommandContext, CommandHandler } from '../server/server-state.js';
import type { Collection } from '../storage/catalog.js';
import { createDraft, draftNext, type StoredDocument } from '../storage/change.js';
import { compileUpdate, type Update } from '../update/update.js';
import {
  collectionName,
  documentOr,
  flag,
  optionalDocument,
  optionalDocuments,
  readCollation,
  readHint,
} from './arguments.js';
import { queryContext } from './query-context.js';
import {
  acknowledge,
  changedMeanwhile,
  documentCheck,
  MAX_ATTEMPTS,
  selectWritten,
  visitWritten,
  type WriteStatement,
  writeTarget,
} from './write-target.js';

/** One update as update, findAndModify and bulkWrite have it. */
export interface UpdateStatement extends WriteStatement {
  readonly update: Document | Document[];
  readonly upsert: boolean;
  readonly arrayFilters?: Document[] | undefined;
  readonly bypassValidation: boolean;
}

/** What an update did. */
interface UpdateOutcome {
  matched: number;
  modified: number;
  /** The document that was inserted because nothing matched. */
  upserted?: StoredDocument;
  /** The last document before and after. */
  before?: StoredDocument;
  after?: StoredDocument;
}

const isReplacement = (update: Document | Document[]): boolean =>
  !Array.isArray(update) && !firstKey(update)?.startsWith('$');

export async function runUpdate(
  ctx: CommandContext,
  db: string,
  coll: string,
  statement: UpdateStatement,
): Promise<UpdateOutcome> {
  if (statement.multi && isReplacement(statement.update))
    throw createParseError('multi update is not supported for replacement-style update');
  if (statement.multi && statement.sort) throw createParseError('Cannot specify sort with multi=true');
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const collection = writeTarget(ctx, db, coll, 'change');
    if (!collection) {
      new UpdateRun(ctx, undefined, statement);
      selectWritten(ctx, undefined, statement);
      if (!statement.upsert) return { matched: 0, modified: 0 };
      return new UpdateRun(ctx, ctx.workspace.obtain(db, coll), statement).insert();
    }
    const run = new UpdateRun(ctx, collection, statement);
    const seen = collection.version;
    const outcome = await run.updateMatches();
    if (outcome === 'changed meanwhile') continue;
    if (outcome.matched > 0 || !statement.upsert) return outcome;
    if (collection.version !== seen) continue;
    return run.insert();
  }
  throw changedMeanwhile();
}

class UpdateRun {
  private readonly update: Update;

  constructor(
    private readonly ctx: CommandContext,
    private readonly collection: Collection | undefined,
    private readonly statement: UpdateStatement,
  ) {
    const { update, arrayFilters, place, variables } = statement;
    const collation = readCollation(place, collection?.options);
    const context = queryContext(ctx, ctx.operation, collection, { collation, variables });
    this.update = compileUpdate(update, { ...(arrayFilters ? { arrayFilters } : {}), ctx: context });
  }

  async updateMatches(): Promise<UpdateOutcome | 'changed meanwhile'> {
    const { ctx, statement } = this;
    const collection = this.collection as Collection;
    const selection = selectWritten(ctx, collection, statement);
    const check = documentCheck(ctx, collection, statement.bypassValidation);
    const outcome: UpdateOutcome = { matched: 0, modified: 0 };
    const done = await visitWritten(ctx, selection, (current) => {
      outcome.matched += 1;
      outcome.before = current;
      outcome.after = current;
      const { doc, modified } = this.update.apply(current.document, selection.filter);
      if (!modified) return;
      check(doc, current.document);
      const kind = this.update.replacement ? 'replace' : 'update';
      outcome.after = ctx.workspace.replace(collection, current, draftNext(current, doc), kind);
      outcome.modified += 1;
    });
    return done ? outcome : 'changed meanwhile';
  }

  insert(): UpdateOutcome {
    const { ctx, statement } = this;
    const collection = this.collection as Collection;
    const { doc } = this.update.apply(this.update.upsertSeed(statement.filter), undefined, true);
    documentCheck(ctx, collection, statement.bypassValidation)(doc);
    const upserted = ctx.workspace.insert(collection, createDraft(doc));
    return { matched: 0, modified: 0, upserted, after: upserted };
  }
}

/** The update part of a statement. Errors: 9 when it is neither a document nor a pipeline. */
export function readUpdate(value: unknown): Document | Document[] {
  if (isDocument(value)) return value;
  if (Array.isArray(value) && value.every(isDocument)) return value;
  throw createParseError('Update argument must be either an object or an array');
}

/** Deletes and gives the number of deleted documents and the last of them. */
export async function runDelete(
  ctx: CommandContext,
  db: string,
  coll: string,
  statement: WriteStatement,
): Promise<{ deleted: number; last?: StoredDocument }> {
  const collection = writeTarget(ctx, db, coll, 'change');
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const selection = selectWritten(ctx, collection, statement);
    if (!collection) return { deleted: 0 };
    let deleted = 0;
    let last: StoredDocument | undefined;
    const done = await visitWritten(ctx, selection, (current) => {
      ctx.workspace.remove(collection, current);
      deleted += 1;
      last = current;
    });
    if (done) return last ? { deleted, last } : { deleted };
  }
  throw changedMeanwhile();
}

export const findAndModify: CommandHandler = async (command, ctx) => {
  const name = collectionName(command, ctx.name);
  const filter = documentOr(command, 'query');
  const where = {
    filter,
    multi: false,
    sort: optionalDocument(command, 'sort'),
    hint: readHint(command),
    place: command,
    variables: optionalDocument(command, 'let'),
  };
  if (flag(command, 'remove')) {
    if (command['update'] !== undefined)
      throw createParseError('Cannot specify both an update and remove=true');
    if (flag(command, 'upsert')) throw createParseError('Cannot specify both upsert=true and remove=true');
    if (flag(command, 'new')) throw createParseError('Cannot specify both new=true and remove=true');
    const { last } = await runDelete(ctx, ctx.db, name, where);
    const value = projectStored(ctx, name, command, last);
    return acknowledge(ctx, command, { lastErrorObject: { n: last ? 1 : 0 }, value });
  }
  if (command['update'] === undefined)
    throw createParseError('Either an update or remove=true must be specified');
  const outcome = await runUpdate(ctx, ctx.db, name, {
    ...where,
    update: readUpdate(command['update']),
    upsert: flag(command, 'upsert'),
    arrayFilters: optionalDocuments(command, 'arrayFilters'),
    bypassValidation: flag(command, 'bypassDocumentValidation'),
  });
  const { upserted } = outcome;
  const lastErrorObject = {
    n: outcome.matched + (upserted ? 1 : 0),
    updatedExisting: outcome.matched > 0,
    ...(upserted ? { upserted: upserted.document['_id'] } : {}),
  };
  const value = projectStored(ctx, name, command, flag(command, 'new') ? outcome.after : outcome.before);
  return acknowledge(ctx, command, { lastErrorObject, value });
};

function projectStored(
  ctx: CommandContext,
  name: string,
  command: Document,
  stored: StoredDocument | undefined,
): unknown {
  if (!stored) return null;
  const fields = optionalDocument(command, 'fields');
  if (!fields || Object.keys(fields).length === 0) return stored.raw;
  const collection = ctx.workspace.find(ctx.db, name);
  const collation = readCollation(command, collection?.options);
  const context = queryContext(ctx, ctx.operation, collection, { collation });
  return compileProjection(
    fields,
    context,
    compileFilter(documentOr(command, 'query'), context),
  )(stored.document);
}
