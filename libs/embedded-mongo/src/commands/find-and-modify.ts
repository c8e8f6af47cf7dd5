import type { Document } from '../bson/document.js';
import { createParseError } from '../errors.js';
import { compileProjection } from '../projection/projection.js';
import { compileFilter } from '../query/filter.js';
import type { CommandContext, CommandHandler } from '../server/command.js';
import type { StoredDocument } from '../storage/stored-document.js';
import {
  readCollation,
  collectionName,
  documentOr,
  flag,
  readHint,
  optionalDocument,
  optionalDocuments,
} from './arguments.js';
import { runDelete } from './delete-statement.js';
import { queryContext } from './query-context.js';
import { runUpdate, readUpdate } from './update-statement.js';
import { acknowledge } from './write-batch.js';

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
    if (flag(command, 'new')) {
      throw createParseError(
        "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document",
      );
    }
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
