import { Long } from 'bson';
import { mongoError } from '../errors.js';
import type { Operation, Pace } from './operation.js';
import type { Rows } from './steps.js';

/** Most cursors open at a time. */
const MAX_CURSORS = 10_000;
/** A cursor that nobody asked for this long is closed, in milliseconds. */
const CURSOR_IDLE_MS = 10 * 60 * 1000;

/** The operation that reads a cursor at the moment; the iterators behind the cursor tick through it. */
export class Reader implements Pace {
  constructor(public operation: Operation) {}

  readonly tick = (): void => this.operation.tick();
  readonly tickExpression = (): void => this.operation.tickExpression();

  get turnIsOver(): boolean {
    return this.operation.turnIsOver;
  }
}

/** What a cursor reads from: encoded documents, or a change stream that waits for more. */
export interface CursorSource {
  readonly reader: Reader;
  readonly kind: 'documents';
  readonly rows: Rows<Buffer>;
}

/** A source that never ends by itself. */
export interface TailingSource {
  readonly reader: Reader;
  readonly kind: 'tailing';
  /** The next documents, at most `limit`; empty when there are none yet. */
  pull(limit: number): Buffer[];
  /** The place after the last document taken. */
  resumeToken(): unknown;
  /** True when nothing can follow. */
  readonly ended: boolean;
  subscribe(wake: () => void): () => void;
}

/** An open cursor. */
export interface Cursor {
  readonly id: Long;
  readonly namespace: string;
  readonly source: CursorSource | TailingSource;
  /** A document read ahead that did not fit into the last batch. */
  ahead: Buffer | undefined;
  /** Time left of the command's maxTimeMS, in milliseconds; undefined for none. */
  budgetMs: number | undefined;
  lastUsed: number;
  readonly noTimeout: boolean;
  readonly sessionKey: string | undefined;
  /** The number of the transaction the cursor belongs to. */
  readonly txnNumber: string | undefined;
  inUse: boolean;
  /** True once its collection is gone, which the next batch tells. */
  orphaned: boolean;
}

/** The open cursors of the server. */
export class CursorTable {
  private readonly open = new Map<string, Cursor>();
  private sequence = 0;

  get size(): number {
    return this.open.size;
  }

  add(cursor: Omit<Cursor, 'id' | 'lastUsed' | 'inUse' | 'orphaned'>): Cursor {
    if (this.open.size >= MAX_CURSORS)
      throw mongoError(146, `too many open cursors, the limit is ${MAX_CURSORS}`);
    this.sequence += 1;
    // Random upper half: a client cannot guess another client's cursor.
    const id = Long.fromBits(this.sequence, 1 + Math.floor(Math.random() * 0x7ffffffe));
    const opened = { ...cursor, id, lastUsed: Date.now(), inUse: false, orphaned: false };
    this.open.set(id.toString(), opened);
    return opened;
  }

  /** Errors: 43 when there is no such cursor. */
  get(id: string): Cursor {
    const cursor = this.open.get(id);
    if (!cursor) throw mongoError(43, `cursor id ${id} not found`);
    return cursor;
  }

  isTailing(id: string): boolean {
    return this.open.get(id)?.source.kind === 'tailing';
  }

  /** Closes a cursor; a getMore that is reading it ends with 237. */
  close(id: string): boolean {
    const cursor = this.open.get(id);
    if (!cursor) return false;
    this.open.delete(id);
    if (cursor.inUse) cursor.source.reader.operation.stop(mongoError(237, 'cursor was killed'));
    return true;
  }

  /** Errors: 175 at the next batch of a cursor over a collection that is dropped. */
  orphan(namespace: string): void {
    for (const cursor of this.open.values()) {
      if (cursor.namespace === namespace && cursor.source.kind === 'documents') cursor.orphaned = true;
    }
  }

  closeWhere(matches: (cursor: Cursor) => boolean): void {
    for (const [id, cursor] of this.open) if (matches(cursor)) this.close(id);
  }

  closeIdle(now: number): void {
    this.closeWhere((cursor) => !cursor.noTimeout && !cursor.inUse && now - cursor.lastUsed > CURSOR_IDLE_MS);
  }
}
