import { Long } from 'bson';
import type { Document } from '../bson/document.js';
import { mongoError } from '../errors.js';
import type { CommandContext } from '../server/command.js';
import { type Cursor, type CursorSource, Reader } from '../server/cursors.js';
import { drain } from '../server/drain.js';
import type { Operation } from '../server/operation.js';
import { encodeDocument } from '../wire/encode.js';
import { MAX_DOCUMENT_BYTES } from '../wire/limits.js';
import { RawBson } from '../wire/raw-bson.js';
import { mapRows, toRows, type Rows } from '../server/rows.js';
import { documentOr, optionalCount } from './arguments.js';

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
export interface CursorOptions {
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
  const batchSize = optionalCount(documentOr(command, 'cursor'), 'batchSize') ?? otherwise;
  const rows = mapRows(toRows(documents), encodeReplyDocument);
  return cursorReply(ctx, namespace, rows, new Reader(ctx.operation), { batchSize });
}

/** Errors: 10334 for a result document that is too large. */
export function encodeReplyDocument(document: Document): Buffer {
  const bytes = encodeDocument(document);
  if (bytes.length > MAX_DOCUMENT_BYTES + 16 * 1024) {
    throw mongoError(
      10334,
      `BSONObj size: ${bytes.length} is invalid. Size must be between 0 and ${MAX_DOCUMENT_BYTES}`,
    );
  }
  return bytes;
}

/** The next batch of an open cursor. */
export async function nextBatch(
  ctx: CommandContext,
  cursor: Cursor,
  source: CursorSource,
  size: number,
): Promise<Document> {
  const { documents, done } = await takeBatch(ctx.operation, source.rows, cursor, size);
  if (done) ctx.server.cursors.close(cursor.id.toString());
  return { cursor: { nextBatch: documents, id: done ? Long.ZERO : cursor.id, ns: cursor.namespace } };
}
