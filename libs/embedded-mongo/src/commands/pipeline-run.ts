import { Long } from 'bson';
import { requireDocument } from '../aggregate/arguments.js';
import { compilePipeline, type PipelineContext } from '../aggregate/pipeline.js';
import { reorderPipeline } from '../aggregate/reorder/reorder-pipeline.js';
import { firstKey, type Document } from '../bson/document.js';
import { mongoError } from '../errors.js';
import type { CommandContext } from '../server/command.js';
import type { Reader } from '../server/cursors.js';
import { collect, type Step } from '../server/drain.js';
import { mapRows, rowsFrom, type Rows } from '../server/rows.js';
import type { Collection } from '../storage/collection.js';
import { takeLeadingQuery, readSourceOptions } from './aggregate-source.js';
import { encodeReplyDocument } from './batches.js';
import { currentOperations } from './diagnostics.js';
import { queryContext } from './query-context.js';
import { listSearchIndexes } from './search-index-commands.js';
import { Selection } from './selection.js';
import { collectionStats } from './statistics.js';
import { refuseOtherCollation, resolveSource } from './views.js';

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
    refuseOtherCollation(command, this.named);
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
    if (this.coll === undefined) {
      throw mongoError(
        73,
        `{aggregate: 1} is not valid for '${firstKey(written[0] ?? {}) ?? ''}'; a collection is required.`,
      );
    }
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
    if (rest.length === 0) {
      return {
        documents: mapRows(found, ({ document }) => document),
        encoded: mapRows(found, ({ raw }) => raw.bytes),
      };
    }
    const stored = await collect(this.ctx.operation, found);
    // Pipelines that came together would otherwise all have their first turn before anyone else has one.
    await this.ctx.operation.begin();
    return pipelineRows(run(stored.map(({ document }) => document)));
  }

  private context(filter?: Document): PipelineContext {
    const options = { ...readSourceOptions(this.command, this.named?.options), filter };
    const context = queryContext(this.ctx, this.reader, this.collection, options);
    return { ...context, variables: context.variables ?? {} };
  }

  /** Sources that are not the documents of a collection; `rest` when the stage is used up. */
  private specialSource(stage: Document | undefined): { documents: Document[]; rest: boolean } | undefined {
    const { server, db } = this.ctx;
    const name = stage && firstKey(stage);
    const code = name === undefined ? undefined : OPERAND_CODES[name];
    if (stage && name && code !== undefined) requireDocument(stage[name], name, code);
    if (this.coll === undefined) {
      if (name === '$currentOp') return { documents: currentOperations(server), rest: true };
      if (name === '$listLocalSessions') return { documents: server.sessions.list(), rest: true };
      return name === '$documents' ? { documents: [], rest: false } : undefined;
    }
    const namespace = `${db}.${this.coll}`;
    if (name === '$collStats') {
      const stats = collectionStats(namespace, this.collection);
      const document = {
        ns: namespace,
        host: server.address,
        localTime: this.ctx.now,
        storageStats: stats,
        count: stats['count'],
      };
      return { documents: this.collection ? [document] : [], rest: true };
    }
    if (name === '$listSearchIndexes') {
      return { documents: listSearchIndexes(this.ctx, this.collection, stage?.[name]), rest: true };
    }
    if (name === '$indexStats') {
      const documents = (this.collection?.indexes ?? []).map(({ spec, accesses: { ops, since } }) => ({
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
}
