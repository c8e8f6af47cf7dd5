import { Long, Timestamp } from 'bson';
import type { Document } from '../bson/document.js';
import { badValue, mongoError, typeMismatch } from '../errors.js';
import type { CommandContext, CommandHandler } from '../server/command.js';
import type { Cursor, TailingSource } from '../server/cursors.js';
import { RawBson } from '../wire/raw-bson.js';
import { collectionName, optionalCount, optionalNumber, requireFields } from './arguments.js';
import { nextBatch } from './batches.js';

/** How long a getMore on a change stream waits when the client says nothing, in milliseconds. */
const DEFAULT_AWAIT_MS = 1_000;
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

const isCursorId = (value: unknown): value is Long => value instanceof Long && !(value instanceof Timestamp);

export const getMore: CommandHandler = async (command, ctx) => {
  const id = command['getMore'];
  requireFields(command, 'getMore', ['getMore', 'collection']);
  if (!isCursorId(id)) throw typeMismatch("BSON field 'getMore.getMore' must be a long");
  if (typeof command['collection'] !== 'string')
    throw typeMismatch("BSON field 'getMore.collection' must be a string");
  const batchSize = Math.trunc(optionalNumber(command, 'batchSize') ?? 0);
  if (batchSize < 0) throw badValue(`batchSize for getMore must be non-negative, but received: ${batchSize}`);
  const key = id.toString();
  const cursor = ctx.server.cursors.get(key);
  const namespace = `${ctx.db}.${collectionName(command, 'collection')}`;
  checkOwner(cursor, namespace, ctx);
  ctx.server.failPoints[ctx.client.member]?.checkGetMore();
  cursor.inUse = true;
  cursor.source.reader.operation = ctx.operation;
  if (cursor.budgetMs !== undefined) ctx.operation.deadline = ctx.operation.startedAt + cursor.budgetMs;
  const size = batchSize || NO_LIMIT;
  try {
    const { source } = cursor;
    if (cursor.orphaned) throw mongoError(175, `collection dropped: ${namespace}`);
    if (source.kind === 'documents' && command['maxTimeMS'] !== undefined && command['maxTimeMS'] !== null)
      throw badValue('cannot set maxTimeMS on getMore command for a non-awaitData cursor');
    return source.kind === 'documents'
      ? await nextBatch(ctx, cursor, source, size)
      : await tail(ctx, cursor, source, size, optionalCount(command, 'maxTimeMS') ?? DEFAULT_AWAIT_MS);
  } catch (error) {
    ctx.server.cursors.close(key);
    throw error;
  } finally {
    cursor.inUse = false;
    cursor.lastUsed = Date.now();
    if (cursor.budgetMs !== undefined) cursor.budgetMs -= Date.now() - ctx.operation.startedAt;
  }
};

function checkOwner(cursor: Cursor, namespace: string, ctx: CommandContext): void {
  if (cursor.namespace !== namespace) {
    throw mongoError(
      13,
      `Requested getMore on namespace '${namespace}', but cursor belongs to a different namespace ${cursor.namespace}`,
    );
  }
  if (cursor.sessionKey !== ctx.session?.key) {
    throw mongoError(
      50738,
      `Cannot run getMore on cursor ${cursor.id.toString()}, which was created in another session`,
    );
  }
  if (cursor.txnNumber !== ctx.txnNumber) {
    throw mongoError(
      50740,
      `Cannot run getMore on cursor ${cursor.id.toString()} outside of its transaction`,
    );
  }
  if (cursor.inUse) throw mongoError(12051, `cursor id ${cursor.id.toString()} is already in use`);
}

/** Waits until the stream has something, its time is over or it is ended. */
async function tail(
  ctx: CommandContext,
  cursor: Cursor,
  source: TailingSource,
  size: number,
  awaitMs: number,
): Promise<Document> {
  const until = Date.now() + awaitMs;
  let documents = source.pull(size);
  while (documents.length === 0 && !source.ended) {
    const left = until - Date.now();
    if (left <= 0) break;
    await ctx.operation.wait(left, (wake) => source.subscribe(wake));
    ctx.operation.tick();
    documents = source.pull(size);
  }
  if (source.ended) ctx.server.cursors.close(cursor.id.toString());
  return {
    cursor: {
      nextBatch: documents.map((bytes) => new RawBson(bytes)),
      id: source.ended ? Long.ZERO : cursor.id,
      ns: cursor.namespace,
      postBatchResumeToken: source.resumeToken(),
    },
  };
}

export const killCursors: CommandHandler = (command, ctx) => {
  const ids = command['cursors'];
  requireFields(command, 'killCursors', ['cursors']);
  if (!Array.isArray(ids)) throw typeMismatch("BSON field 'killCursors.cursors' must be an array");
  collectionName(command, 'killCursors');
  const cursorsKilled: unknown[] = [];
  const cursorsNotFound: unknown[] = [];
  const named: unknown[] = ids.filter((one) => one !== null);
  if (!named.every(isCursorId)) throw typeMismatch("BSON field 'killCursors.cursors' must hold longs");
  for (const id of named)
    (ctx.server.cursors.close(id.toString()) ? cursorsKilled : cursorsNotFound).push(id);
  return { cursorsKilled, cursorsNotFound, cursorsAlive: [], cursorsUnknown: [] };
};
