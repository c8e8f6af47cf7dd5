import { Long, Timestamp } from 'bson';
import type { Document } from '../bson/document.js';
import { badValue, mongoError, refuseUnknown, typeMismatch } from '../errors.js';
import { type Cursor, type CursorSource, Reader, type TailingSource } from '../server/cursors.js';
import type { Operation } from '../server/operation.js';
import type { CommandContext, CommandHandler } from '../server/server-state.js';
import { drain, mapRows, type Rows, toRows } from '../server/steps.js';
import { encodeDocument } from '../wire/encode.js';
import { MAX_DOCUMENT_BYTES, RawBson, refuseLarge } from '../wire/raw-bson.js';
import { collectionName, documentOr, optionalCount, optionalInteger, requireFields } from './arguments.js';

/** Documents of a first batch when the client names no number. */
export const DEFAULT_BATCH = 101;

interface BatchState {
  ahead: Buffer | undefined;
}

/** Takes the next batch: at most `size` documents and about 16 MB; `done` when nothing follows. */
async function takeBatch(
  operation: Operation,
  rows: Rows<Buffer>,
  state: BatchState,
  size: number,
): Promise<{ documents: RawBson[]; done: boolean }> {
  const documents: RawBson[] = [];
  let bytes = 0;
  const take = (document: Buffer): boolean => {
    if (documents.length > 0 && bytes + document.length > MAX_DOCUMENT_BYTES) {
      state.ahead = document;
      return false;
    }
    bytes += document.length;
    documents.push(new RawBson(document));
    return documents.length < size;
  };
  if (size === 0) return { documents, done: state.ahead === undefined && rows.isFinished() };
  if (state.ahead !== undefined) {
    const first = state.ahead;
    state.ahead = undefined;
    if (!take(first)) return { documents, done: rows.isFinished() };
  }
  const ended = await drain(operation, rows, take);
  return { documents, done: ended || (state.ahead === undefined && rows.isFinished()) };
}

/** Options of a cursor that a command may set. */
interface CursorOptions {
  readonly batchSize?: number | undefined;
  readonly single?: boolean;
  readonly noTimeout?: boolean;
}

/** The reply of a command that returns a cursor: the first batch, and the open cursor when more follows. */
export async function cursorReply(
  ctx: CommandContext,
  namespace: string,
  rows: Rows<Buffer>,
  reader: Reader,
  options: CursorOptions = {},
): Promise<Document> {
  const state: BatchState = { ahead: undefined };
  const { documents, done } = await takeBatch(ctx.operation, rows, state, options.batchSize ?? DEFAULT_BATCH);
  let id = Long.ZERO;
  if (!done && options.single !== true) {
    const source: CursorSource = { kind: 'documents', reader, rows };
    id = ctx.server.cursors.add({
      namespace,
      source,
      ahead: state.ahead,
      budgetMs: ctx.operation.deadline === 0 ? undefined : ctx.operation.deadline - Date.now(),
      noTimeout: options.noTimeout ?? false,
      sessionKey: ctx.session?.key,
      txnNumber: ctx.txnNumber,
    }).id;
  }
  return { cursor: { firstBatch: documents, id, ns: namespace } };
}

/** The reply of a command that lists what there is: `otherwise` at once unless its `cursor` says how many. */
export function listReply(
  ctx: CommandContext,
  namespace: string,
  documents: readonly Document[],
  command: Document,
  otherwise = Number.MAX_SAFE_INTEGER,
): Promise<Document> {
  const cursor = documentOr(command, 'cursor');
  refuseUnknown(cursor, ['batchSize'], 'cursor');
  const batchSize = optionalCount(cursor, 'batchSize') ?? otherwise;
  const rows = mapRows(toRows(documents), encodeReplyDocument);
  return cursorReply(ctx, namespace, rows, new Reader(ctx.operation), { batchSize });
}

/** Errors: 10334 for a result document that is too large. */
export function encodeReplyDocument(document: Document): Buffer {
  const bytes = encodeDocument(document);
  refuseLarge(bytes, MAX_DOCUMENT_BYTES + 16 * 1024);
  return bytes;
}

/** The next batch of an open cursor. */
async function nextBatch(
  ctx: CommandContext,
  cursor: Cursor,
  source: CursorSource,
  size: number,
): Promise<Document> {
  const { documents, done } = await takeBatch(ctx.operation, source.rows, cursor, size);
  if (done) ctx.server.cursors.close(cursor.id.toString());
  return { cursor: { nextBatch: documents, id: done ? Long.ZERO : cursor.id, ns: cursor.namespace } };
}

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
  const batchSize = optionalInteger(command, 'batchSize') ?? 0;
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
  if (cursor.namespace !== namespace)
    throw mongoError(13, `the cursor belongs to ${cursor.namespace}, not to ${namespace}`);
  if (cursor.sessionKey !== ctx.session?.key)
    throw mongoError(50738, 'the cursor was created in another session');
  if (cursor.txnNumber !== ctx.txnNumber)
    throw mongoError(50740, 'the cursor is read outside of its transaction');
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
