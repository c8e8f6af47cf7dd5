import { compareValues } from '../bson/compare.js';
import { firstKey, isDocument, type Document } from '../bson/document.js';
import { createParseError, mongoError } from '../errors.js';
import type { CommandContext } from '../server/command.js';
import type { Collection } from '../storage/collection.js';
import { draftNext, createDraft, type StoredDocument } from '../storage/stored-document.js';
import { compileUpdate, type Update } from '../update/update.js';
import { readCollation } from './arguments.js';
import { queryContext } from './query-context.js';
import { documentCheck } from './validation.js';
import {
  writeTarget,
  visitWritten,
  MAX_ATTEMPTS,
  type WriteStatement,
  selectWritten,
  changedMeanwhile,
} from './write-target.js';

/** One update as update, findAndModify and bulkWrite have it. */
export interface UpdateStatement extends WriteStatement {
  readonly update: Document | Document[];
  readonly upsert: boolean;
  readonly arrayFilters?: Document[] | undefined;
  readonly bypassValidation: boolean;
}

/** What an update did. */
export interface UpdateOutcome {
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
  if (statement.multi && isReplacement(statement.update)) {
    throw createParseError('multi update is not supported for replacement-style update');
  }
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
      if (compareValues(doc['_id'], current.document['_id']) !== 0) {
        throw mongoError(66, "Performing an update on the path '_id' would modify the immutable field '_id'");
      }
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
