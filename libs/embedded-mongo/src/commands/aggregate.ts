import { splitWriteStage } from '../aggregate/pipeline.js';
import { firstKey, isDocument, type Document } from '../bson/document.js';
import { createParseError, mongoError, typeMismatch } from '../errors.js';
import type { CommandHandler } from '../server/command.js';
import { Reader } from '../server/cursors.js';
import { collect } from '../server/drain.js';
import { toRows } from '../server/rows.js';
import { flag, optionalCount, optionalDocument, readCollation } from './arguments.js';
import { cursorReply } from './batches.js';
import { openChangeStream } from './change-streams.js';
import { explainCommand } from './explain.js';
import { PipelineRun } from './pipeline-run.js';
import { writeResults } from './write-stage.js';

/** Stages that no transaction may have. */
const barredStages = new Set(['$collStats', '$currentOp', '$indexStats', '$listLocalSessions', '$unionWith']);

export const aggregate: CommandHandler = async (command, ctx) => {
  const pipeline = readPipeline(command);
  if (flag(command, 'explain')) {
    const { explain: _, ...inner } = command;
    return explainCommand(inner, ctx, 'queryPlanner');
  }
  const cursor = optionalDocument(command, 'cursor');
  if (!cursor) {
    throw createParseError("The 'cursor' option is required, except for aggregate with the explain argument");
  }
  const batchSize = optionalCount(cursor, 'batchSize');
  const [first] = pipeline;
  const name = command['aggregate'];
  if (first && Object.hasOwn(first, '$changeStream'))
    return openChangeStream(command, ctx, pipeline, batchSize);
  if (typeof name === 'string' && name === '')
    throw mongoError(73, `Invalid namespace specified '${ctx.db}.'`);
  const coll = typeof name === 'string' ? name : undefined;
  const { pipeline: stages, write } = splitWriteStage(pipeline);
  const barred = ctx.transaction && pipeline.map(firstKey).find((stage) => barredStages.has(stage ?? ''));
  if (barred) throw mongoError(263, `Stage not supported inside of a multi-document transaction: ${barred}`);
  const { readConcern: concern } = command;
  if (write && isDocument(concern) && concern['level'] === 'linearizable')
    throw mongoError(72, '$out and $merge are not supported with the read concern linearizable');
  if (write && ctx.workspace !== ctx.server.store.live) {
    const [code, place] = ctx.transaction ? [263, 'transaction'] : [72, 'snapshot'];
    throw mongoError(code, `${firstKey(pipeline.at(-1) ?? {}) ?? ''} cannot be used in a ${place}`);
  }
  const reader = new Reader(ctx.operation);
  const run = new PipelineRun(ctx, coll, command, reader);
  const rows = await run.rows(stages);
  const namespace = `${ctx.db}.${coll ?? '$cmd.aggregate'}`;
  if (!write) return cursorReply(ctx, namespace, rows.encoded, reader, { batchSize });
  await writeResults(ctx, write, await collect(ctx.operation, rows.documents), {
    bypass: flag(command, 'bypassDocumentValidation'),
    collation: readCollation(command, coll === undefined ? {} : ctx.workspace.find(ctx.db, coll)?.options),
    variables: optionalDocument(command, 'let'),
  });
  return cursorReply(ctx, namespace, toRows([]), reader, {});
};

function readPipeline(command: Document): Document[] {
  const { pipeline } = command;
  if (!Array.isArray(pipeline)) throw typeMismatch("'pipeline' option must be specified as an array");
  return pipeline.map((stage: unknown) => {
    if (!isDocument(stage)) throw typeMismatch("Each element of the 'pipeline' array must be an object");
    return stage;
  });
}
