import type { AbstractCursor, ClientSession, Db, Document, Long } from 'mongodb';
import { type Abortable, isAborted, whenAborted } from '#core';
import type { OperationContext } from '#data';
import { isDriverError, isServerError } from '../errors.js';
import type { FastReads } from '../fast-reads/fast-reads.js';
import { SIMPLE_COLLATION } from './collation.js';
import type { MongoConnection } from './mongo-connection.js';

/** Documents of a collection that match a filter. One batch holds the whole limit, if 16 MB suffice. */
interface FindRead {
  readonly collection: string;
  readonly filter: Document;
  readonly projection?: Document | undefined;
  readonly sort?: Document | undefined;
  readonly skip?: number | undefined;
  readonly limit: number;
}

/** What a pipeline returns. It must not write. */
export interface PipelineRead {
  readonly collection: string;
  readonly pipeline: readonly Document[];
  /** Documents of a batch. Default: those of the server. */
  readonly batchSize?: number;
}

export type ReadLimits = Pick<OperationContext, 'maxTimeMS' | 'comment' | keyof Abortable>;

/** Documents as BSON, in the batches in which the server sends them. Their reader closes them. */
export interface DocumentBatches {
  /** The first batch, then the next. Not called again once `open` is false. */
  next(): Promise<Uint8Array[]>;
  /** Whether the server has more. */
  readonly open: boolean;
  /** Ends the cursor of the server if it is open. Never rejects, and waits a few seconds at most. */
  close(): Promise<void>;
}

/**
 * Opens a read. It is sent as a command where one server answers all commands of the read; the cursors of the driver, which
 * remember their server, take twice the CPU (`docs/contributing/decisions/0015-reads-by-command.md`). The commands go over a
 * connection of `FastReads` where there are such connections and one is free.
 */
export function openRead(
  connection: MongoConnection,
  read: FindRead | PipelineRead,
  limits: ReadLimits,
): DocumentBatches {
  const { db, fastReads, session } = connection;
  if (session) return new CursorBatches(openCursor(db, read, limits, session));
  if (sendsToOneServer(db)) return new CommandBatches(db, fastReads, read, limits);
  return new CursorBatches(openCursor(db, read, limits));
}

/** The driver's knowledge of its servers. Its types hide it; where it is not as expected, reads use the driver's cursors. */
interface DriverTopology {
  readonly topology?: {
    readonly description?: { readonly type?: string; readonly servers?: { readonly size: number } };
  };
}

/**
 * Whether any command that is sent now would reach the server that a cursor was opened at. The driver repeats commands that an
 * overloaded server refused only if it may repeat writes as well, and it encrypts and decrypts what is not raw.
 */
function sendsToOneServer({ client, readPreference }: Db): boolean {
  const { type, servers } = (client as DriverTopology).topology?.description ?? {};
  if (client.options.retryWrites === false || client.options.autoEncryption) return false;
  if (type === 'Single') return true;
  if (readPreference?.mode !== 'primary') return false;
  return type === 'ReplicaSetWithPrimary' || (type === 'Sharded' && servers?.size === 1);
}

/** Codes after which a read is repeated once, by the specification of retryable reads that all drivers share. */
const REPEATABLE = new Set([6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436]);

/** An overloaded server sets the label where the driver may repeat the command, after a while. */
const isRepeatable = (error: unknown): boolean =>
  isDriverError(error, 'MongoNetworkError') ||
  (isServerError(error) && (REPEATABLE.has(Number(error.code)) || error.hasErrorLabel('RetryableError')));

/** Milliseconds that a server has to end a cursor: a server that does not answer ends it by itself later. */
const CLOSED_WITHIN = 2_000;

/** As the driver answers its own cursors: the documents of a batch stay bytes. */
const AS_BYTES = { fieldsAsRaw: { firstBatch: true, nextBatch: true }, promoteLongs: false };

/** The batch of a read that was sent as a command. */
interface Batch {
  readonly id: Long;
  readonly firstBatch?: Uint8Array[];
  readonly nextBatch?: Uint8Array[];
}

/** Sends the commands of one read, all to the same server. A connection of `FastReads` is one. */
interface CommandSender {
  send(command: Document, limits: ReadLimits): Promise<Document>;
  /** The session that the cursor of the read belongs to, if it belongs to one. */
  readonly session?: ClientSession;
  /** Nothing more is sent. */
  release(): void;
}

/** Over the pool of the driver. */
class DriverSender implements CommandSender {
  readonly session: ClientSession;

  constructor(private readonly db: Db) {
    this.session = db.client.startSession({ causalConsistency: false });
  }

  send(command: Document, limits: ReadLimits): Promise<Document> {
    const { readPreference } = this.db;
    return this.db.command(command, {
      ...AS_BYTES,
      signal: driverSignal(limits),
      session: this.session,
      ...(readPreference && { readPreference }),
    });
  }

  release(): void {
    void this.session.endSession();
  }
}

class CommandBatches implements DocumentBatches {
  /** Null: nothing was sent yet, or nothing will be sent any more. */
  private sender: CommandSender | null = null;
  /** The cursor of the server; null when it has none, or none any more. */
  private cursor: Long | null = null;

  constructor(
    private readonly db: Db,
    private readonly fastReads: FastReads | null,
    private readonly read: FindRead | PipelineRead,
    private readonly limits: ReadLimits,
  ) {}

  get open(): boolean {
    return this.cursor !== null;
  }

  async next(): Promise<Uint8Array[]> {
    const answer = await (this.sender ? this.sender.send(this.getMore(), this.limits) : this.first());
    const { id, firstBatch, nextBatch } = answer['cursor'] as Batch;
    this.cursor = id.isZero() ? null : id;
    if (!this.cursor) this.release();
    return firstBatch ?? nextBatch ?? [];
  }

  async close(): Promise<void> {
    const { cursor } = this;
    this.cursor = null;
    if (cursor) {
      const { session } = this.sender ?? {};
      await this.db
        .command(
          { killCursors: this.read.collection, cursors: [cursor] },
          { ...(session && { session }), signal: AbortSignal.timeout(CLOSED_WITHIN) },
        )
        .catch(() => undefined);
    }
    this.release();
  }

  private release(): void {
    this.sender?.release();
    this.sender = null;
  }

  private async first(): Promise<Document> {
    const command = toCommand(this.db, this.read, this.limits);
    const fast = this.fastReads?.take() ?? null;
    this.sender = fast ?? new DriverSender(this.db);
    try {
      return await this.sender.send(command, this.limits);
    } catch (error) {
      // The driver repeats reads of its own cursors, and never commands.
      if (this.db.client.options.retryReads === false || !isRepeatable(error)) throw error;
    }
    if (fast) {
      // The driver has to learn from an answer of its own that a server is lost.
      fast.release();
      this.sender = new DriverSender(this.db);
    }
    return this.sender.send(command, this.limits);
  }

  private getMore(): Document {
    const { collection } = this.read;
    const batchSize = findBatchSize(this.read);
    const { comment } = this.limits;
    const $db = this.db.databaseName;
    return { getMore: this.cursor, collection, ...(batchSize && { batchSize }), comment, $db };
  }
}

/** A find whose batch is one larger than its limit leaves no cursor open. */
const findBatchSize = (read: FindRead | PipelineRead): number | undefined =>
  'filter' in read ? read.limit + 1 : read.batchSize;

function toCommand(db: Db, read: FindRead | PipelineRead, { maxTimeMS, comment }: ReadLimits): Document {
  const batchSize = findBatchSize(read);
  const { readConcern } = db;
  const limits = {
    ...SIMPLE_COLLATION,
    comment,
    ...(readConcern && { readConcern }),
    maxTimeMS,
    $db: db.databaseName,
  };
  if (!('filter' in read)) {
    const cursor = batchSize === undefined ? {} : { batchSize };
    return { aggregate: read.collection, pipeline: read.pipeline, cursor, ...limits };
  }
  const { collection, filter, projection, sort, skip, limit } = read;
  return {
    find: collection,
    filter,
    ...(sort && Object.keys(sort).length > 0 && { sort }),
    ...(projection && { projection }),
    ...(skip !== undefined && { skip }),
    limit,
    batchSize,
    ...limits,
  };
}

/** The batches of a cursor of the driver that was opened with `raw: true`. */
export class CursorBatches implements DocumentBatches {
  constructor(private readonly cursor: AbstractCursor<unknown>) {}

  get open(): boolean {
    return this.cursor.id?.isZero() === false;
  }

  async next(): Promise<Uint8Array[]> {
    const first = await this.cursor.next();
    if (first === null) return [];
    return [first, ...this.cursor.readBufferedDocuments()] as Uint8Array[];
  }

  async close(): Promise<void> {
    if (this.cursor.closed) return;
    let timer: NodeJS.Timeout | undefined;
    // The driver waits for the server as long as the connection is there.
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSED_WITHIN)));
    await Promise.race([this.cursor.close().catch(() => undefined), late]);
    clearTimeout(timer);
  }
}

function openCursor(
  db: Db,
  read: FindRead | PipelineRead,
  limits: ReadLimits,
  session?: ClientSession,
): AbstractCursor<unknown> {
  const { maxTimeMS, comment } = limits;
  const signal = driverSignal(limits);
  const options = { ...SIMPLE_COLLATION, maxTimeMS, comment, signal, raw: true, ...(session && { session }) };
  const collection = db.collection(read.collection);
  if (!('filter' in read)) {
    const { batchSize } = read;
    return collection.aggregate([...read.pipeline], { ...options, ...(batchSize && { batchSize }) });
  }
  const { filter, projection, sort, skip, limit } = read;
  return collection.find(filter, {
    ...options,
    ...(projection && { projection }),
    ...(sort && { sort }),
    ...(skip !== undefined && { skip }),
    limit,
    batchSize: limit,
  });
}

/**
 * What the driver uses of an `AbortSignal`: it asks whether it has aborted and why, and adds and removes listeners, two or three for
 * each command. The listeners of Node's own signals cost more than the rest of that
 * (docs/contributing/decisions/0032-signals-when-read.md).
 */
class DriverSignal {
  private listeners: (() => void)[] = [];
  private removeListener: (() => void) | null = null;

  constructor(private readonly operation: Abortable) {}

  get aborted(): boolean {
    return isAborted(this.operation);
  }

  get reason(): unknown {
    return this.operation.signal.reason;
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.removeListener ??= whenAborted(this.operation, () => this.abort());
    this.listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.listeners.indexOf(listener);
    if (at !== -1) this.listeners.splice(at, 1);
    if (this.listeners.length > 0) return;
    this.removeListener?.();
    this.removeListener = null;
  }

  /** The driver's listeners read the reason of `this`. */
  private abort(): void {
    const { listeners } = this;
    this.listeners = [];
    this.removeListener = null;
    for (const listener of listeners) listener.call(this);
  }
}

/**
 * The signal of an operation for the driver. Nothing else may take it: it is no `AbortSignal` for `fetch` or `AbortSignal.any`.
 */
export function driverSignal(operation: Abortable): AbortSignal {
  return new DriverSignal(operation) as unknown as AbortSignal;
}
