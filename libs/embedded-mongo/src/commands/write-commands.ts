import type { Document } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { createParseError, mongoError } from '../errors.js';
import type { CommandHandler } from '../server/server-state.js';
import { draftInserted } from '../storage/change.js';
import {
  collectionName,
  documentArray,
  documentOr,
  flag,
  optionalDocument,
  optionalDocuments,
  readHint,
  requireFields,
} from './arguments.js';
import { readUpdate, runDelete, runUpdate, type UpdateStatement } from './update-statement.js';
import {
  acknowledge,
  checkBatchSize,
  documentCheck,
  insertTarget,
  runBatch,
  writeErrors,
  type WriteStatement,
} from './write-target.js';

export const insert: CommandHandler = async (command, ctx) => {
  const name = collectionName(command, 'insert');
  const documents = ctx.rawDocuments('documents') ?? [];
  checkBatchSize(documents);
  const collection = insertTarget(ctx, ctx.db, name);
  const check = documentCheck(ctx, collection, flag(command, 'bypassDocumentValidation'));
  let n = 0;
  const errors = await runBatch(ctx, documents, flag(command, 'ordered', true), (bytes) => {
    const draft = draftInserted(bytes);
    check(draft.document);
    ctx.workspace.insert(collection, draft);
    n += 1;
  });
  return acknowledge(ctx, command, { n, ...writeErrors(errors) });
};

/** One entry of an update command, also used by explain. */
export function updateStatement(entry: Document, command: Document): UpdateStatement {
  requireFields(entry, 'update.updates', ['q', 'u']);
  if (entry['c'] !== undefined && !Array.isArray(entry['u']))
    throw mongoError(51198, 'Constant values may only be specified for pipeline updates');
  return {
    filter: documentOr(entry, 'q'),
    update: readUpdate(entry['u']),
    multi: flag(entry, 'multi'),
    upsert: flag(entry, 'upsert'),
    sort: optionalDocument(entry, 'sort'),
    hint: readHint(entry),
    place: entry,
    arrayFilters: optionalDocuments(entry, 'arrayFilters'),
    variables: readVariables(command, entry),
    bypassValidation: flag(command, 'bypassDocumentValidation'),
  };
}

/** `let` of the command and the constants of the statement. */
function readVariables(command: Document, entry: Document): Document | undefined {
  const variables = { ...optionalDocument(command, 'let'), ...optionalDocument(entry, 'c') };
  return Object.keys(variables).length > 0 ? variables : undefined;
}

export const update: CommandHandler = async (command, ctx) => {
  const name = collectionName(command, 'update');
  const entries = documentArray(command, 'updates');
  checkBatchSize(entries);
  const upserted: Document[] = [];
  let n = 0;
  let nModified = 0;
  const errors = await runBatch(ctx, entries, flag(command, 'ordered', true), async (entry, index) => {
    const outcome = await runUpdate(ctx, ctx.db, name, updateStatement(entry, command));
    n += outcome.matched + (outcome.upserted ? 1 : 0);
    nModified += outcome.modified;
    if (outcome.upserted) upserted.push({ index, _id: outcome.upserted.document['_id'] });
  });
  return acknowledge(ctx, command, {
    n,
    nModified,
    ...(upserted.length > 0 ? { upserted } : {}),
    ...writeErrors(errors),
  });
};

/** One entry of a delete command, also used by explain. Errors: 9 for a limit other than 0 and 1. */
export function deleteStatement(entry: Document, command: Document): WriteStatement {
  requireFields(entry, 'delete.deletes', ['q', 'limit']);
  const limit = numberKind(entry['limit']) === undefined ? NaN : toDouble(entry['limit']);
  if (limit !== 0 && limit !== 1)
    throw createParseError(`The limit field in delete objects must be 0 or 1. Got ${String(entry['limit'])}`);
  return {
    filter: documentOr(entry, 'q'),
    multi: limit === 0,
    hint: readHint(entry),
    place: entry,
    variables: readVariables(command, entry),
  };
}

export const remove: CommandHandler = async (command, ctx) => {
  const name = collectionName(command, 'delete');
  const entries = documentArray(command, 'deletes');
  checkBatchSize(entries);
  let n = 0;
  const errors = await runBatch(ctx, entries, flag(command, 'ordered', true), async (entry) => {
    n += (await runDelete(ctx, ctx.db, name, deleteStatement(entry, command))).deleted;
  });
  return acknowledge(ctx, command, { n, ...writeErrors(errors) });
};
