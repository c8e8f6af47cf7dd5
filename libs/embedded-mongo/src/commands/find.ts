import type { Document } from '../bson/document.js';
import { compileProjection } from '../projection/projection.js';
import type { CommandHandler } from '../server/command.js';
import { Reader } from '../server/cursors.js';
import { mapRows } from '../server/rows.js';
import { collectionName, flag, optionalCount, optionalDocument } from './arguments.js';
import { cursorReply, encodeReplyDocument } from './batches.js';
import { notImplemented } from '../errors.js';
import { PipelineRun } from './pipeline-run.js';
import { Selection, type SelectionSpec } from './selection.js';
import { toStages, selectionStages, readSelection } from './aggregate-source.js';

/** The selection of a find command, also used by explain. Errors: 238 for tailable cursors, min, max and the like. */
export function findSpec(command: Document, collectionOptions: Document | undefined): SelectionSpec {
  for (const option of ['tailable', 'awaitData', 'min', 'max', 'returnKey', 'showRecordId']) {
    if (command[option] !== undefined && command[option] !== false)
      throw notImplemented(`the find option '${option}'`);
  }
  return readSelection(command, 'filter', collectionOptions);
}

export const find: CommandHandler = async (command, ctx) => {
  const name = collectionName(command, 'find');
  const namespace = `${ctx.db}.${name}`;
  const collection = ctx.workspace.find(ctx.db, name);
  const spec = findSpec(command, collection?.options);
  const projection = optionalDocument(command, 'projection');
  const options = {
    batchSize: optionalCount(command, 'batchSize'),
    single: flag(command, 'singleBatch'),
    noTimeout: flag(command, 'noCursorTimeout'),
  };
  const reader = new Reader(ctx.operation);
  if (collection?.view) {
    const stages = [...selectionStages(spec), ...toStages('$project', projection)];
    const rows = await new PipelineRun(ctx, name, command, reader).rows(stages);
    return cursorReply(ctx, namespace, rows.encoded, reader, options);
  }
  const selection = new Selection(ctx, collection, spec, reader);
  const project =
    projection && Object.keys(projection).length > 0
      ? compileProjection(projection, selection.queryContext, selection.filter)
      : undefined;
  const stored = await selection.rows();
  const rows = project
    ? mapRows(stored, ({ document }) => encodeReplyDocument(project(document)))
    : mapRows(stored, ({ raw }) => raw.bytes);
  return cursorReply(ctx, namespace, rows, reader, options);
};
