import { compilePipeline } from '../aggregate/pipeline.js';
import { withoutPauses } from '../aggregate/stage.js';
import { type Document, firstKey, isDocument } from '../bson/document.js';
import { mongoError, refuseUnknown, typeMismatch } from '../errors.js';
import { ChangeStream } from '../feed/change-stream.js';
import { startPosition, streamOptions } from '../feed/stream-options.js';
import { Reader, type TailingSource } from '../server/cursors.js';
import type { CommandContext } from '../server/server-state.js';
import { RawBson } from '../wire/raw-bson.js';
import { readCollation } from './arguments.js';
import { DEFAULT_BATCH } from './cursor-commands.js';
import { queryContext } from './query-context.js';
import { refuseView } from './write-target.js';

/** Stages that may follow `$changeStream`. */
const allowed = new Set(
  '$addFields $match $project $replaceRoot $replaceWith $redact $set $unset'.split(' '),
);
const known = (
  'fullDocument fullDocumentBeforeChange resumeAfter startAfter startAtOperationTime allChangesForCluster ' +
  'showExpandedEvents'
).split(' ');
/** Opens a change stream. Errors: 40573 on a standalone, 20 for a stage that may not follow, 40415, 50811, 286. */
export function openChangeStream(
  command: Document,
  ctx: CommandContext,
  pipeline: readonly Document[],
  batchSize = DEFAULT_BATCH,
): Document {
  const [first = {}, ...stages] = pipeline;
  const { $changeStream: spec } = first;
  if (!isDocument(spec)) throw typeMismatch('$changeStream must be an object');
  if (!ctx.server.replSet)
    throw mongoError(40573, 'The $changeStream stage is only supported on replica sets');
  if (ctx.transaction) throw mongoError(263, '$changeStream cannot run in a multi-document transaction');
  refuseUnknown(spec, known, '$changeStream');
  const reader = new Reader(ctx.operation);
  const collation = readCollation(command, undefined);
  // Whether they are stages at all is said first.
  const run = compilePipeline(stages, queryContext(ctx, reader, undefined, { collation }));
  const other = stages.map((stage) => firstKey(stage) ?? '').find((stage) => !allowed.has(stage));
  if (other !== undefined) throw mongoError(20, `${other} is not permitted in a $changeStream pipeline`);

  const { catalog, log } = ctx.server.store;
  refuseUnwatchable(command, ctx);
  const stream = new ChangeStream(
    log,
    readScope(command, ctx, spec),
    streamOptions(spec),
    startPosition(log, spec),
    stages.length > 0 ? (event) => withoutPauses(run([event])) : undefined,
    (db, coll) => catalog.find(db, coll),
  );
  const source: TailingSource = {
    kind: 'tailing',
    reader,
    pull: (limit) => stream.pull(limit),
    resumeToken: () => stream.resumeToken(),
    get ended() {
      return stream.ended;
    },
    subscribe: (wake) => log.onAppend(wake),
  };
  const firstBatch = stream.pull(batchSize);
  const name = command['aggregate'];
  const namespace = `${ctx.db}.${typeof name === 'string' ? name : '$cmd.aggregate'}`;
  const cursor = ctx.server.cursors.add({
    namespace,
    source,
    ahead: undefined,
    budgetMs: undefined,
    noTimeout: false,
    sessionKey: ctx.session?.key,
    txnNumber: undefined,
  });
  return {
    cursor: {
      firstBatch: firstBatch.map((bytes) => new RawBson(bytes)),
      id: cursor.id,
      ns: namespace,
      postBatchResumeToken: stream.resumeToken(),
    },
  };
}

/** Errors: 166 for a view or measurements, which have no changes of their own. */
function refuseUnwatchable({ aggregate: name }: Document, ctx: CommandContext): void {
  const collection = typeof name === 'string' ? ctx.workspace.find(ctx.db, name) : undefined;
  if (!collection) return;
  refuseView(collection);
  if (collection.options['timeseries'] === undefined) return;
  throw mongoError(166, `Namespace ${collection.fullName} is a timeseries collection`);
}

function readScope(
  command: Document,
  ctx: CommandContext,
  spec: Document,
): { db: string | undefined; coll: string | undefined } {
  if (spec['allChangesForCluster'] === true) {
    if (ctx.db !== 'admin') throw mongoError(72, "'allChangesForCluster' is for the 'admin' database");
    return { db: undefined, coll: undefined };
  }
  const name = command['aggregate'];
  return { db: ctx.db, coll: typeof name === 'string' ? name : undefined };
}
