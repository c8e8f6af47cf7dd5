import { Binary } from 'bson';
import { type Document, isDocument } from '../bson/document.js';
import { mongoError, type MongoError, typeMismatch } from '../errors.js';
import type { Catalog } from '../storage/catalog.js';
import { Transaction, TRANSIENT } from './transaction.js';

/** How long a session lives without use, in minutes (announced in the handshake). */
export const SESSION_TIMEOUT_MINUTES = 30;
/** How long a transaction may stay open, in milliseconds. */
const TRANSACTION_LIFETIME_MS = 60_000;
/** How long a statement waits for the one that starts its transaction, in milliseconds. */
const START_WAIT_MS = 100;

/** One logical session: its transaction, and the answers of its latest retryable write. */
export class ServerSession {
  transaction: Transaction | undefined;
  lastUsed = Date.now();
  private latestNumber = -1n;
  private retryable: { number: string; reply: Document } | undefined;
  private queue: Promise<unknown> = Promise.resolve();
  private readonly startWaiters = new Set<() => void>();

  constructor(
    readonly key: string,
    readonly lsid: Document,
  ) {}

  /** Runs one statement at a time: a session's writes and transactions are sequential by definition. */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    const run = this.queue.then(work);
    this.queue = run.catch(() => undefined);
    return run;
  }

  /** The stored answer when this write was already done. Errors: 225 for a number from the past. */
  findAnswered(number: string): Document | undefined {
    this.advance(number);
    return this.retryable?.number === number ? this.retryable.reply : undefined;
  }

  remember(number: string, reply: Document): void {
    this.retryable = { number, reply };
  }

  /** Errors: 225 for a number from the past, 117 when this transaction is already open. */
  begin(number: string, catalog: Catalog): Transaction {
    this.advance(number);
    if (this.transaction?.number === number && this.transaction.state === 'open')
      throw mongoError(117, `transaction ${number} is already in progress`);
    if (this.transaction?.state === 'open') this.transaction.abort();
    this.transaction = new Transaction(number, catalog);
    for (const wake of this.startWaiters) wake();
    return this.transaction;
  }

  /**
   * Waits a moment for the start of a transaction: a client that sends the statements of one transaction over several
   * connections may have a later statement arrive first.
   */
  async awaitStart(number: string): Promise<void> {
    if (this.transaction !== undefined && BigInt(this.transaction.number) >= BigInt(number)) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.startWaiters.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, START_WAIT_MS);
      this.startWaiters.add(wake);
    });
  }

  /** The open transaction of this number. Errors: 251 when there is none, 256 when it is committed. */
  current(number: string): Transaction {
    const transaction = this.transaction;
    if (transaction?.number !== number) {
      throw noSuchTransaction(`transaction ${number} is not in progress, but ${transaction?.number ?? '-1'}`);
    }
    if (transaction.state === 'committed')
      throw mongoError(256, `Transaction with { txnNumber: ${number} } has been committed.`);
    if (transaction.state === 'aborted')
      throw noSuchTransaction(`Transaction with { txnNumber: ${number} } has been aborted.`);
    return transaction;
  }

  private advance(number: string): void {
    const value = BigInt(number);
    if (value < this.latestNumber)
      throw mongoError(225, `Cannot use transaction number ${number}: ${this.latestNumber} is newer`);
    this.latestNumber = value;
  }
}

function noSuchTransaction(message: string): MongoError {
  const error = mongoError(251, message);
  error.labels = [TRANSIENT];
  return error;
}

/** The sessions of the server, by their id. */
export class SessionTable {
  private readonly sessions = new Map<string, ServerSession>();

  get size(): number {
    return this.sessions.size;
  }

  /** The session of an `lsid`, made on first use. Errors: 14 when the id is no UUID. */
  obtain(lsid: unknown): ServerSession {
    const key = sessionKey(lsid);
    let session = this.sessions.get(key);
    if (!session) this.sessions.set(key, (session = new ServerSession(key, lsid as Document)));
    session.lastUsed = Date.now();
    return session;
  }

  /** The sessions as `$listLocalSessions` shows them. */
  list(): Document[] {
    return Array.from(this.sessions.values(), ({ lsid, lastUsed }) => ({
      _id: lsid,
      lastUse: new Date(lastUsed),
    }));
  }

  end(lsid: unknown): string {
    const key = sessionKey(lsid);
    this.sessions.get(key)?.transaction?.abort();
    this.sessions.delete(key);
    return key;
  }

  /** Aborts open transactions, those of all sessions unless keys are named. */
  abortTransactions(keys?: ReadonlySet<string>): void {
    for (const { key, transaction } of this.sessions.values())
      if (transaction?.state === 'open' && keys?.has(key) !== false) transaction.abort();
  }

  /** Aborts transactions that stay open too long and forgets sessions nobody uses; gives the forgotten keys. */
  expire(now: number): string[] {
    const forgotten: string[] = [];
    for (const [key, session] of this.sessions) {
      const { transaction } = session;
      if (transaction?.state === 'open' && now - transaction.startedAt > TRANSACTION_LIFETIME_MS)
        transaction.abort();
      if (now - session.lastUsed > SESSION_TIMEOUT_MINUTES * 60_000) {
        this.sessions.delete(key);
        forgotten.push(key);
      }
    }
    return forgotten;
  }
}

/** Errors: 14 when the value is no session id. */
export function sessionKey(lsid: unknown): string {
  const id = isDocument(lsid) ? lsid['id'] : undefined;
  if (!(id instanceof Binary) || id.sub_type !== Binary.SUBTYPE_UUID || id.length() !== 16)
    throw typeMismatch("BSON field 'lsid.id' must be a UUID");
  return Buffer.from(id.value()).toString('hex');
}
