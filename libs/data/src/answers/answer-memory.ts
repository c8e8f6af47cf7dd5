import { type Abortable, whenAborted } from '#core';
import { type ParseRow, StoreError, type StoreName } from '../record-store.js';

/** Maximum bytes of one answer of a database or of Parse Server. */
export const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

/**
 * The minimum that every value of an answer counts for, in bytes: a list of small values takes far more memory as objects
 * than its bytes on the wire.
 */
export const MIN_VALUE_BYTES = 64;

/** Answers up to this size, in bytes as they arrive, are processed without weighing and without waiting for a turn. */
const SMALL_ANSWER_BYTES = 256 * 1024;

/** Bytes that several reads of one answer may use together; each read subtracts its own. */
export interface AnswerLeft {
  bytes: number;
}

/** @param maxBytes Default: the limit of the store for any answer */
export const answerLeft = (maxBytes = Infinity): AnswerLeft => ({
  bytes: Math.min(maxBytes, MAX_ANSWER_BYTES),
});

interface Waiting {
  readonly principal: string;
  readonly begin: (ends: () => void) => void;
}

/** Runs one task at a time. The principal that ran last is served after the other waiting principals. */
class Turns {
  private readonly waiting: Waiting[] = [];
  private running = false;
  private last: string | undefined;

  /** Resolves when it is this principal's turn, with a function that ends the turn. */
  next(principal: string): Promise<() => void> {
    return new Promise((begin) => {
      this.waiting.push({ principal, begin });
      this.advance();
    });
  }

  private advance(): void {
    if (this.running) return;
    const another = this.waiting.findIndex(({ principal }) => principal !== this.last);
    const [next] = this.waiting.splice(Math.max(another, 0), 1);
    if (!next) return;
    this.running = true;
    this.last = next.principal;
    let ended = false;
    next.begin(() => {
      if (ended) return;
      ended = true;
      this.running = false;
      this.advance();
    });
  }
}

export interface AnswerMemoryOptions {
  /** Bytes of one answer. Default 32 MiB. */
  readonly maxAnswerBytes?: number;
  /** Bytes of all answers that are being received. Default 64 MiB. */
  readonly maxBytesInFlight?: number;
}

export interface AnswerRequest {
  /** The principal of the read. Absent: the service itself. */
  readonly principal?: string | undefined;
  /** Bytes reserved before the size of the answer is known. */
  readonly expected: number;
  /** Milliseconds that the read may wait until it is sent. */
  readonly maxTimeMS: number;
  /** Ends the wait when it has to end. */
  readonly operation: Abortable;
  /** The source of the answer: named in refusals. Default `the database`. */
  readonly store?: StoreName;
}

const IN_FLIGHT = 64 * 1024 * 1024;
/** The longest wait for other answers, in milliseconds. */
const LONGEST_WAIT = 5_000;

interface Waiter {
  readonly principal: string;
  readonly bytes: number;
  readonly admit: () => void;
}

/**
 * Limits how many bytes of database answers the process holds at once. A read reserves what it expects, and the bytes that
 * arrive are counted; a principal may hold as much as is free, so that one principal takes a half, two take a third each, and
 * some memory is always left for the next one. The first read of a principal is always admitted, up to twice the limit. Large
 * answers are converted to objects one at a time, with the principals taking turns.
 */
export class AnswerMemory {
  private readonly total: number;
  readonly maxAnswerBytes: number;
  private readonly turns = new Turns();
  private readonly held = new Map<string, number>();
  private readonly waiting = new Set<Waiter>();
  private inFlight = 0;

  constructor(options: AnswerMemoryOptions = {}) {
    this.total = options.maxBytesInFlight ?? IN_FLIGHT;
    this.maxAnswerBytes = options.maxAnswerBytes ?? MAX_ANSWER_BYTES;
  }

  /** Bytes that are reserved now. */
  get bytesInFlight(): number {
    return this.inFlight;
  }

  /**
   * Begins a read: waits until the expected bytes are available. The caller must end it.
   * @throws StoreError `busy` when they are not available in time, `cancelled`
   */
  async begin(request: AnswerRequest): Promise<AnswerInFlight> {
    const { principal = '', store = 'the database' } = request;
    const expected = Math.min(request.expected, this.maxAnswerBytes);
    if (this.admits(principal, expected)) this.take(principal, expected);
    else await this.room({ ...request, principal, expected, store });
    return new AnswerInFlight(this, this.turns, principal, store, expected);
  }

  /** Counts bytes that arrived beyond the reserved ones. For `AnswerInFlight`. */
  take(principal: string, bytes: number): void {
    this.inFlight += bytes;
    this.held.set(principal, (this.held.get(principal) ?? 0) + bytes);
  }

  /** For `AnswerInFlight`. */
  giveBack(principal: string, bytes: number): void {
    this.inFlight -= bytes;
    const left = (this.held.get(principal) ?? 0) - bytes;
    if (left > 0) this.held.set(principal, left);
    else this.held.delete(principal);
    for (const waiter of this.waiting) {
      if (!this.admits(waiter.principal, waiter.bytes)) continue;
      this.waiting.delete(waiter);
      this.take(waiter.principal, waiter.bytes);
      waiter.admit();
    }
  }

  /** Whether an incomplete read may continue. For `AnswerInFlight`. */
  get full(): boolean {
    return this.inFlight > this.total;
  }

  private admits(principal: string, bytes: number): boolean {
    const held = this.held.get(principal) ?? 0;
    if (held === 0 && this.inFlight + bytes <= this.total * 2) return true;
    return held + bytes <= this.total - this.inFlight;
  }

  private room({
    principal,
    expected,
    maxTimeMS,
    operation,
    store,
  }: Required<AnswerRequest> & { readonly principal: string }): Promise<void> {
    return new Promise((resolve, reject) => {
      const finishWait = (finish: () => void): void => {
        clearTimeout(timer);
        removeListener();
        this.waiting.delete(waiter);
        finish();
      };
      const waiter: Waiter = { principal, bytes: expected, admit: () => finishWait(resolve) };
      const rejectAborted = (): void =>
        finishWait(() => reject(new StoreError('cancelled', { store, cause: operation.signal.reason })));
      const timer = setTimeout(
        () => finishWait(() => reject(new StoreError('busy', { store }))),
        Math.min(maxTimeMS, LONGEST_WAIT),
      );
      const removeListener = whenAborted(operation, rejectAborted);
      this.waiting.add(waiter);
    });
  }
}

/** One answer that is being received. */
export class AnswerInFlight {
  private weight = 0;
  private size = 0;
  private ended = false;

  constructor(
    private readonly memory: AnswerMemory,
    private readonly turns: Turns,
    private readonly principal: string,
    private readonly store: StoreName,
    private reserved: number,
  ) {}

  /** Bytes of memory that the answer counts for. */
  get bytes(): number {
    return this.weight;
  }

  /**
   * Counts a chunk of the answer.
   * @param size bytes as they arrived
   * @param weigh the bytes that they count for, where the answer is not small
   * @param limit maximum bytes of the answer
   * @throws StoreError `too_large` when the answer is larger than the limit
   */
  noteArrival(size: number, weigh: () => number, limit: number): void {
    const small = this.size + size <= SMALL_ANSWER_BYTES;
    this.size += size;
    this.weight += small ? size : Math.max(size, weigh());
    const most = Math.min(limit, this.memory.maxAnswerBytes);
    if (this.weight > most) throw this.error('too_large', `the answer counts for more than ${most} bytes`);
    if (this.weight <= this.reserved) return;
    this.memory.take(this.principal, this.weight - this.reserved);
    this.reserved = this.weight;
  }

  /** Called before another chunk is requested. @throws StoreError `busy` when other reads fill the memory for answers */
  assertRoom(): void {
    if (this.size > SMALL_ANSWER_BYTES && this.memory.full)
      throw this.error('busy', 'other answers fill the memory for answers');
  }

  /**
   * Runs the conversion of the answer to objects: at once for a small answer, in turn for a large one, whose turn ends after
   * the caller has had time to shorten it.
   */
  async become<T>(work: () => T | Promise<T>): Promise<T> {
    if (this.size <= SMALL_ANSWER_BYTES) return work();
    const ends = await this.turns.next(this.principal);
    try {
      return await work();
    } finally {
      // The code that follows runs until the result is shortened, without waiting.
      setImmediate(() => setImmediate(ends));
    }
  }

  /** The answer was delivered or is no longer needed. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.memory.giveBack(this.principal, this.reserved);
  }

  private error(code: 'too_large' | 'busy', reason: string): StoreError {
    return new StoreError(code, { store: this.store, cause: new Error(reason) });
  }
}

/** One instance for the process: all connections and applications in the process share its memory. */
export const ANSWER_MEMORY = new AnswerMemory();

/**
 * Bytes that a JSON value counts for: its texts and names, where each value has at least `MIN_VALUE_BYTES`. A value that
 * occurs in several places counts in each of them.
 * @param most where counting ends: the result for a larger value is any number above it
 */
export function valueWeight(value: unknown, most = Infinity): number {
  if (typeof value === 'string') return Math.max(value.length, MIN_VALUE_BYTES);
  let weight = MIN_VALUE_BYTES;
  if (value === null || typeof value !== 'object') return weight;
  if (Array.isArray(value)) {
    for (const member of value) {
      if (weight > most) return weight;
      weight += valueWeight(member, most - weight);
    }
    return weight;
  }
  for (const name in value) {
    if (weight > most) return weight;
    weight += name.length + valueWeight((value as Record<string, unknown>)[name], most - weight);
  }
  return weight;
}

/**
 * Rows that were read once and occur in an answer once per pointer to them: from the second occurrence on, each counts
 * against the bytes of the answer.
 */
export class PlacedRows {
  private readonly rows = new Map<string, { readonly row: ParseRow; weight?: number }>();

  constructor(
    private readonly left: AnswerLeft,
    private readonly store: StoreName = 'the database',
  ) {}

  add(objectId: string, row: ParseRow): void {
    this.rows.set(objectId, { row });
  }

  /** @throws StoreError `too_large` */
  place(objectId: string): ParseRow | undefined {
    const found = this.rows.get(objectId);
    if (!found) return undefined;
    if (found.weight === undefined) found.weight = valueWeight(found.row);
    else this.left.bytes -= found.weight;
    if (this.left.bytes < 0) throw new StoreError('too_large', { store: this.store });
    return found.row;
  }
}
