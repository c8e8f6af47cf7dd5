import { Long } from 'bson';
import { requireDocument } from '../aggregate/arguments.js';
import { compilePipeline, splitWriteStage } from '../aggregate/pipeline.js';
import { reorderPipeline } from '../aggregate/reorder/reorder-pipeline.js';
import { type Document, firstKey, isDocument } from '../bson/document.js';
import { createParseError, mongoError, notImplemented, refuseUnknown, typeMismatch } from '../errors.js';
import type { QueryContext } from '../query/context.js';
import { Reader } from '../server/cursors.js';
import type { CommandContext, CommandHandler } from '../server/server-state.js';
import { collect, mapRows, type Rows, rowsFrom, type Step, toRows } from '../server/steps.js';
import type { Collection } from '../storage/catalog.js';
import { flag, optionalCount, optionalDocument, readCollation } from './arguments.js';
import { openChangeStream } from './change-streams.js';
import { cursorReply, encodeReplyDocument } from './cursor-commands.js';
import { collectionStats, currentOperations } from './diagnostics.js';
import { explainCommand } from './explain.js';
import { listSearchIndexes } from './index-commands.js';
import { queryContext } from './query-context.js';
import { readSourceOptions, Selection, takeLeadingQuery } from './selection.js';
import { refuseOtherCollation, resolveSource } from './views.js';
import { writeResults } from './write-stage.js';
import { refuseView } from './write-target.js';

/** The results of a pipeline, as documents or encoded; only one of the two may be read. */
interface PipelineRows {
  readonly documents: Rows<Document>;
  readonly encoded: Rows<Buffer>;
}

function pipelineRows(results: Iterable<Step<Document>>): PipelineRows {
  const documents = rowsFrom(results[Symbol.iterator]());
  return { documents, encoded: mapRows(documents, encodeReplyDocument) };
}

/** Stages that take an object, with the error for anything else. */
const OPERAND_CODES: Readonly<Record<string, number>> = {
  $currentOp: 14,
  $listLocalSessions: 14,
};

/** A pipeline over a collection, or over a view and the collections under it. */
export class PipelineRun {
  /** The collection that the documents come from. */
  private readonly collection: Collection | undefined;
  /** What the command names: the collection itself, or a view of it, whose collation counts. */
  private readonly named: Collection | undefined;
  private readonly viewStages: readonly Document[];

  /** Errors: 165 for too many views on each other, 167 for another collation than the view's. */
  constructor(
    private readonly ctx: CommandContext,
    private readonly coll: string | undefined,
    private readonly command: Document,
    private readonly reader: Reader,
  ) {
    this.named = coll === undefined ? undefined : ctx.workspace.find(ctx.db, coll);
    refuseOtherCollation(readCollation(command, this.named?.options), this.named);
    const source = coll === undefined ? undefined : resolveSource(ctx.workspace, ctx.db, coll);
    this.collection = source?.collection;
    this.viewStages = source?.stages ?? [];
  }

  async rows(asked: Document[]): Promise<PipelineRows> {
    const written = [...this.viewStages, ...asked];
    const special = this.specialSource(written[0]);
    if (special) {
      const run = compilePipeline(special.rest ? written.slice(1) : written, this.context());
      return pipelineRows(run(special.documents));
    }
    if (this.coll === undefined)
      throw mongoError(73, '{aggregate: 1} is not valid here: a collection is required');
    const options = readSourceOptions(this.command, this.named?.options);
    // The whole pipeline is checked before its beginning is taken off.
    compilePipeline(written, this.context(takeLeadingQuery(written, options).spec.filter));
    const { order } = this.ctx.server;
    const stages = order ? reorderPipeline(written, order) : written;
    const { spec, rest } = takeLeadingQuery(stages, options);
    // Here, and not when it runs: what it joins is as it is now, whatever others write meanwhile.
    const run = compilePipeline(rest, this.context(spec.filter));
    if (!this.collection) return pipelineRows(run([]));
    const selection = new Selection(this.ctx, this.collection, spec, this.reader);
    const found = await selection.rows();
    if (rest.length === 0)
      return {
        documents: mapRows(found, ({ document }) => document),
        encoded: mapRows(found, ({ raw }) => raw.bytes),
      };
    const stored = await collect(this.ctx.operation, found);
    // Pipelines that came together would otherwise all have their first turn before anyone else has one.
    await this.ctx.operation.begin();
    return pipelineRows(run(stored.map(({ document }) => document)));
  }

  private context(filter?: Document): QueryContext {
    const options = { ...readSourceOptions(this.command, this.named?.options), filter };
    return queryContext(this.ctx, this.reader, this.collection, options);
  }

  /** Sources that are not the documents of a collection; `rest` when the stage is used up. */
  private specialSource(stage: Document | undefined): { documents: Document[]; rest: boolean } | undefined {
    const { server, db } = this.ctx;
    const name = stage && Object.keys(stage).length === 1 ? firstKey(stage) : undefined;
    const code = name === undefined ? undefined : OPERAND_CODES[name];
    if (stage && name && code !== undefined) requireDocument(stage[name], name, code);
    if (this.coll === undefined) {
      if (name === '$currentOp') return { documents: currentOperations(server), rest: true };
      if (name === '$listLocalSessions') return { documents: server.sessions.list(), rest: true };
      return name === '$documents' ? { documents: [], rest: false } : undefined;
    }
    const namespace = `${db}.${this.coll}`;
    if (name === '$collStats')
      return {
        documents: [this.statistics(namespace, requireDocument(stage?.[name], name, 5447000))],
        rest: true,
      };
    if (name === '$listSearchIndexes')
      return { documents: listSearchIndexes(this.ctx, this.collection, stage?.[name]), rest: true };
    if (name === '$indexStats') {
      if (!isDocument(stage?.[name]) || firstKey(stage[name]) !== undefined)
        throw mongoError(28803, '$indexStats takes an empty object');
      const documents = (this.collection?.listed ?? []).map(({ spec, accesses: { ops, since } }) => ({
        name: spec.name,
        key: spec.key,
        spec,
        host: server.address,
        accesses: { ops: Long.fromNumber(ops), since },
      }));
      return { documents, rest: true };
    }
    return undefined;
  }

  /** Errors: 14, 26, 166, 31170, 40415; 238 for times, which nobody takes here. */
  private statistics(ns: string, spec: Document): Document {
    const { address: host } = this.ctx.server;
    refuseUnknown(spec, ['storageStats', 'count', 'latencyStats', 'queryExecStats'], '$collStats');
    const [storageStats, count] = ['storageStats', 'count'].map((part) => optionalDocument(spec, part));
    if (spec['latencyStats'] ?? spec['queryExecStats'])
      throw notImplemented('$collStats with latencyStats or queryExecStats');
    if (count && firstKey(count) !== undefined)
      throw mongoError(31170, "'count' of $collStats has no options");
    if ((storageStats || count) && this.named) refuseView(this.named);
    if ((storageStats || count) && !this.collection) throw mongoError(26, `Collection [${ns}] not found.`);
    const stats = (storageStats ?? count) && collectionStats(ns, this.collection, storageStats ?? {});
    return {
      ns,
      host,
      localTime: this.ctx.now,
      ...(storageStats && { storageStats: stats }),
      ...(count && { count: stats?.['count'] }),
    };
  }
}

/** Stages that no transaction may have. */
const barredStages = new Set(['$collStats', '$currentOp', '$indexStats', '$listLocalSessions', '$unionWith']);

export const aggregate: CommandHandler = async (command, ctx) => {
  const pipeline = readPipeline(command);
  if (flag(command, 'explain')) {
    const { explain: _, ...inner } = command;
    return explainCommand(inner, ctx, 'queryPlanner');
  }
  const cursor = optionalDocument(command, 'cursor');
  if (!cursor)
    throw createParseError("The 'cursor' option is required, except for aggregate with the explain argument");
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
