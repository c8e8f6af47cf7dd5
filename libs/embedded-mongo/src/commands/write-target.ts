import { type Document, firstKey, getField, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { badValue, mongoError, MongoError, notImplemented } from '../errors.js';
import type { Filter, QueryContext } from '../query/context.js';
import { compileFilter } from '../query/filter.js';
import { compileJsonSchema } from '../query/json-schema.js';
import type { CommandContext } from '../server/server-state.js';
import { drain } from '../server/steps.js';
import { type Collection, VIEW_CATALOG } from '../storage/catalog.js';
import type { StoredDocument } from '../storage/change.js';
import { MAX_WRITE_BATCH } from '../wire/raw-bson.js';
import { readCollation } from './arguments.js';
import { Selection } from './selection.js';

/** Errors that end the whole command, not just one statement: the time is up, somebody stopped it, or a conflict. */
const commandErrors = new Set([50, 112, 237, 279, 11601]);

/** Runs statements one by one and gives the errors of those that failed; stops at the first one when `compileOrder`. */
export async function runBatch<T>(
  ctx: CommandContext,
  statements: readonly T[],
  ordered: boolean,
  run: (statement: T, index: number) => void | Promise<void>,
): Promise<Document[]> {
  const errors: Document[] = [];
  for (const [index, statement] of statements.entries()) {
    try {
      ctx.operation.tick();
      await run(statement, index);
      if (ctx.operation.turnIsOver) await ctx.operation.breathe();
    } catch (error) {
      if (!(error instanceof MongoError) || commandErrors.has(error.code)) throw error;
      errors.push({ index, code: error.code, errmsg: error.message, ...error.extra });
      // A failed statement ends its transaction, so nothing after it can run.
      if (ctx.transaction) ctx.transaction.abort();
      if (ordered || ctx.transaction) break;
    }
  }
  return errors;
}

/** Errors: 16 for an empty or too large batch. */
export function checkBatchSize(statements: readonly unknown[]): void {
  if (statements.length >= 1 && statements.length <= MAX_WRITE_BATCH) return;
  throw mongoError(16, `Write batch sizes must be between 1 and ${MAX_WRITE_BATCH}`);
}

/** Completes a write's reply as its write concern asks for: waits for the disk, or says what cannot be had. */
export async function acknowledge(
  ctx: CommandContext,
  command: Document,
  reply: Document,
): Promise<Document> {
  const concern = command['writeConcern'];
  if (!isDocument(concern)) return reply;
  if (concern['j'] === true) await ctx.server.store.journal?.sync();
  const nodes = concern['w'];
  if (numberKind(nodes) === undefined || toDouble(nodes) <= 1) return reply;
  return {
    ...reply,
    writeConcernError: {
      code: 100,
      codeName: 'UnsatisfiableWriteConcern',
      errmsg: 'Not enough data-bearing nodes',
    },
  };
}

export const writeErrors = (errors: readonly Document[]): Document =>
  errors.length > 0 ? { writeErrors: errors } : {};

/** What a statement does to the documents of its collection. */
type WriteKind = 'insert' | 'change';

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
  if (timeseries !== undefined && kind === 'change')
    throw notImplemented('changing or deleting the documents of a time-series collection');
  if (ctx.transaction && (collection.capped || timeseries !== undefined))
    throw mongoError(263, `no transaction may write to ${collection.fullName}`);
  return collection;
}

/** The collection that documents are inserted into, created when it is missing. Errors: those of `writeTarget`. */
export function insertTarget(ctx: CommandContext, db: string, coll: string): Collection {
  return writeTarget(ctx, db, coll, 'insert') ?? ctx.workspace.obtain(db, coll);
}

/** Errors: 166 for a view. */
export function refuseView(collection: Collection): void {
  if (collection.view) throw mongoError(166, `Namespace ${collection.fullName} is a view, not a collection`);
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

/**
 * A check of documents before they are stored, with the document that an update replaces. Errors of the check: 121, and 2 for
 * a measurement without its time.
 */
export type DocumentCheck = (document: Document, before?: Document) => void;

/** A filter of documents that belong to no collection, or to one whose indexes do not count. */
export function plainFilter(filter: Document, ctx: CommandContext, more: Partial<QueryContext> = {}): Filter {
  return compileFilter(filter, {
    tick: ctx.operation.tick,
    now: ctx.now,
    timeless: !('clusterTime' in more),
    ...more,
  });
}

/** The collection's validator as a check; nothing to check when it has none or the client bypasses it. */
export function documentCheck(ctx: CommandContext, collection: Collection, bypass: boolean): DocumentCheck {
  const { validator, validationAction, validationLevel, timeseries } = collection.options;
  if (isDocument(timeseries)) return (document) => requireTime(document, String(timeseries['timeField']));
  if (bypass || !isDocument(validator) || firstKey(validator) === undefined) return () => {};
  if (validationAction === 'warn' || validationLevel === 'off') return () => {};
  const collation = readCollation({}, collection.options);
  const filter = plainFilter(validator, ctx, {
    clusterTime: ctx.clusterTime,
    ...(collation && { collation }),
  });
  return (document, before) => {
    if (filter.matches(document)) return;
    // A document that was invalid before may stay so.
    if (validationLevel === 'moderate' && before && !filter.matches(before)) return;
    throw mongoError(121, 'Document failed validation', {
      errInfo: { failingDocumentId: document['_id'], details: failureDetails(validator, document) },
    });
  };
}

/** What the document does not satisfy: for a `$jsonSchema` rule by rule, otherwise the filter as a whole. */
function failureDetails(validator: Document, document: Document): Document {
  const operatorName = firstKey(validator) ?? '';
  const schema = getField(validator, '$jsonSchema');
  if (Object.keys(validator).length > 1 || !isDocument(schema))
    return { operatorName, specifiedAs: validator, reason: 'the document does not match the validator' };
  const { title, description } = schema;
  return {
    operatorName,
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    schemaRulesNotSatisfied: compileJsonSchema(schema).failures(document),
  };
}

function requireTime(document: Document, field: string): void {
  if (getField(document, field) instanceof Date) return;
  throw badValue(`'${field}' must be present and contain a valid BSON UTC datetime value`);
}
