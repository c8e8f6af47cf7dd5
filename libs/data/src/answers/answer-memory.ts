import { StoreError, type StoreName } from '../record-store.js';

/** Bytes of one answer of a database or of Parse Server, at most. */
export const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

/**
 * What every value of an answer counts as at least, in bytes: a list of small values takes far more memory as objects than
 * it has bytes on the wire.
 */
export const MIN_VALUE_BYTES = 64;

/** Answers up to this size, in bytes as they arrive, are taken without being weighed or waiting for a turn. */
const SMALL_ANSWER_BYTES = 256 * 1024;

/** What several reads of one answer may take together, in bytes; each takes its own away. */
export interface AnswerLeft {
  bytes: number;
}

/** @param maxBytes Default: what the store reads for any answer */
export const answerLeft = (maxBytes = Infinity): AnswerLeft => ({
  bytes: Math.min(maxBytes, MAX_ANSWER_BYTES),
});

interface Waiting {
  readonly principal: string;
  readonly begin: (ends: () => void) => void;
}

/** Runs one at a time. Among those that wait, the principal that ran last comes after the others. */
class Turns {
  private readonly waiting: Waiting[] = [];
  private running = false;
  private last: string | undefined;

  /** Resolves when it is this principal's turn, with what ends it. */
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
  /** Whose read it is. Absent: the service's own. */
  readonly principal?: string | undefined;
  /** Bytes set aside before anything is known of the answer. */
  readonly expected: number;
  /** Milliseconds that the read may wait until it is sent. */
  readonly maxTimeMS: number;
  /** Ends the wait. */
  readonly signal?: AbortSignal | undefined;
  /** Who is asked: named in refusals. Default `the database`. */
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
 * How much of the answers of databases the process holds at once. A read sets aside what it expects, and what has arrived is
 * counted; a principal may hold as much as is free, so that one takes a half, two a third each, and there is always
 * something left for the next one. The first read of a principal is admitted in any case, up to twice the limit. Large
 * answers become objects one at a time, principals taking turns.
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

  /** Bytes that are set aside at the moment. */
  get bytesInFlight(): number {
    return this.inFlight;
  }

  /**
   * Begins a read: waits until there is room for the bytes that it expects. The caller must end it.
   * @throws StoreError `busy` when there is none in time, `cancelled`
   */
  async begin(request: AnswerRequest): Promise<AnswerInFlight> {
    const { principal = '', store = 'the database' } = request;
    const expected = Math.min(request.expected, this.maxAnswerBytes);
    if (this.admits(principal, expected)) this.take(principal, expected);
    else await this.room({ ...request, principal, expected, store });
    return new AnswerInFlight(this, this.turns, principal, store, expected);
  }

  /** Counts what came beyond what was set aside. For `AnswerInFlight`. */
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

  /** Whether a read that is not complete may go on. For `AnswerInFlight`. */
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
    signal,
    store,
  }: Required<Omit<AnswerRequest, 'signal'>> & {
    readonly principal: string;
    readonly signal?: AbortSignal | undefined;
  }): Promise<void> {
    return new Promise((resolve, reject) => {
      const ended = (finish: () => void): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', aborted);
        this.waiting.delete(waiter);
        finish();
      };
      const waiter: Waiter = { principal, bytes: expected, admit: () => ended(resolve) };
      const aborted = (): void =>
        ended(() => reject(new StoreError('cancelled', { store, cause: signal?.reason })));
      const timer = setTimeout(
        () => ended(() => reject(new StoreError('busy', { store }))),
        Math.min(maxTimeMS, LONGEST_WAIT),
      );
      signal?.addEventListener('abort', aborted, { once: true });
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
   * Counts a part of the answer.
   * @param size bytes as they arrived
   * @param weigh what they count for, where the answer is not small
   * @param limit bytes that the answer may have, at most
   * @throws StoreError `too_large` when the answer is larger than the limit
   */
  arrived(size: number, weigh: () => number, limit: number): void {
    const small = this.size + size <= SMALL_ANSWER_BYTES;
    this.size += size;
    this.weight += small ? size : Math.max(size, weigh());
    const most = Math.min(limit, this.memory.maxAnswerBytes);
    if (this.weight > most) throw this.error('too_large', `the answer counts for more than ${most} bytes`);
    if (this.weight <= this.reserved) return;
    this.memory.take(this.principal, this.weight - this.reserved);
    this.reserved = this.weight;
  }

  /** Asked before another part is requested. @throws StoreError `busy` when others fill the memory for answers */
  assertRoom(): void {
    if (this.size > SMALL_ANSWER_BYTES && this.memory.full)
      throw this.error('busy', 'other answers fill the memory for answers');
  }

  /**
   * Runs what makes objects of the answer: at once for a small one, in turn for a large one, whose turn ends when whoever
   * asked has had time to shorten it.
   */
  async become<T>(work: () => T | Promise<T>): Promise<T> {
    if (this.size <= SMALL_ANSWER_BYTES) return work();
    const ends = await this.turns.next(this.principal);
    try {
      return await work();
    } finally {
      // What follows runs to the shortened result without waiting for anything.
      setImmediate(() => setImmediate(ends));
    }
  }

  /** The answer was handed out, or is of no use. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.memory.giveBack(this.principal, this.reserved);
  }

  private error(code: 'too_large' | 'busy', reason: string): StoreError {
    return new StoreError(code, { store: this.store, cause: new Error(reason) });
  }
}

/** Of this process: its memory is one, however many connections and applications are in it. */
export const ANSWER_MEMORY = new AnswerMemory();
