import type { ChainHead } from '../audit-record.js';
import type { SealedLine } from '../chain/audit-chain.js';
import { FileProblem } from './file-problem.js';

/** A destination of records. It handles one operation at a time; a failed delivery is repeated. */
export interface RecordDelivery {
  /** For the log. Contains neither an address nor a password. */
  readonly name: string;
  /** Maximum number of records per delivery. */
  readonly batch: number;
  /**
   * The latest record in the destination, where that can be read: the next chain refers to it.
   * @throws when it cannot be reached
   */
  open(): Promise<ChainHead | null>;
  /**
   * Stores all records in order, as durably as the destination is configured. @throws when any of them was not stored
   */
  deliver(records: readonly SealedLine[]): Promise<void>;
  close(): Promise<void>;
}

/** State of a sink. `buffering`: records wait on disk. `down`: calls are refused. */
export const SINK_STATES = ['up', 'buffering', 'down'] as const;
export type SinkState = (typeof SINK_STATES)[number];

/** Writes records to a destination, with a policy for its failures. */
export interface SinkWriter {
  readonly name: string;
  readonly state: SinkState;
  /** Whether the queue is full. */
  readonly isFull: boolean;
  /** Whether so many refusals of the same caller wait that this one, of a call that had not begun, is not queued. */
  isExcess(content: object): boolean;
  /** @returns the latest record in the destination; null when there is none or it cannot be reached */
  open(): Promise<ChainHead | null>;
  /**
   * Queues a record.
   * @param begun false: of a call that did nothing. Default: true
   * @returns a promise when the caller has to wait until the record is stored. If it rejects, the record stays queued
   * and is delivered later.
   */
  keep(record: SealedLine, begun?: boolean): Promise<void> | undefined;
  /** Delivers queued records for at most `timeout` milliseconds. */
  close(timeout: number): Promise<void>;
}

/** The record has not been stored yet; the message says why. */
export class RecordNotKept extends Error {
  override readonly name = 'RecordNotKept';
}

/** A collection of records cannot be used. Its message contains no credential, no address and no text of a driver. */
export class AuditStoreError extends Error {
  override readonly name = 'AuditStoreError';
  /** @param found what keeps it from being used */
  constructor(
    readonly found: string,
    options?: ErrorOptions,
  ) {
    super(`the collection of audit records cannot be used: ${found}; check its sink in audit.sinks`, options);
  }
}

/** The operator's log of failures and recoveries. */
export interface DeliveryLog {
  log(line: string): void;
  warn(line: string): void;
}

/** A webhook answered that it does not take what was sent. */
export class WebhookRefused extends Error {
  override readonly name = 'WebhookRefused';

  constructor(status: number) {
    super(`answered ${status}`);
  }
}

/** Name and code of an error, without addresses; of a store or a file, what is wrong with it and what to do. */
export function errorName(error: unknown): string {
  if (error instanceof FileProblem || error instanceof WebhookRefused) return error.message;
  if (error instanceof AuditStoreError) return error.found;
  if (!(error instanceof Error)) return 'unknown fault';
  // A request that failed has the code in its cause.
  const { code } = (error.cause ?? error) as NodeJS.ErrnoException;
  if (typeof code !== 'string') return error.name;
  const found = UNREACHED_WORDS[code];
  return found === undefined ? `${error.name} ${code}` : `${found}, ${code}`;
}

const UNREACHED_WORDS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'its host name is not known',
  EAI_AGAIN: 'its host name is not known',
  ECONNREFUSED: 'nobody listens at its address',
};

interface DeliveryWorkerOptions {
  readonly delivery: RecordDelivery;
  /**
   * Milliseconds after which an attempt is reported as failed. The worker still waits for it, because a destination
   * handles one operation at a time.
   */
  readonly timeout: number;
  /** The next records to deliver, at most `limit`; empty when there are none. */
  next(limit: number): Promise<readonly SealedLine[]>;
  /** The latest batch was stored. */
  markStored(records: readonly SealedLine[]): Promise<void> | void;
  /** An attempt failed or takes too long. */
  reportFailure(error: unknown): void;
  /** No records are left to deliver. */
  reportDrained(): void;
}

/** Milliseconds for closing a destination. */
const CLOSE_TIMEOUT = 1_000;

/** Delivers records in order, one batch at a time, and retries failed batches. */
export class DeliveryWorker {
  private readonly delay = new RetryDelay();
  private opening: Promise<ChainHead | null> | null = null;
  private running: Promise<void> | null = null;
  private retry: NodeJS.Timeout | undefined;
  /** Records arrived during the current run. */
  private more = false;
  private ended = false;

  constructor(private readonly options: DeliveryWorkerOptions) {}

  /** @returns null when the destination could not be opened in time; it is opened again later */
  async open(): Promise<ChainHead | null> {
    try {
      const head = await atMost(this.options.timeout, this.openOnce());
      if (head !== undefined) return head;
      this.reportFailure(new RecordNotKept('no answer in time'));
    } catch (error) {
      this.reportFailure(error);
    }
    return null;
  }

  /** Starts a run, because there are records to deliver. */
  run(): void {
    if (this.ended) return;
    if (this.running) {
      this.more = true;
      return;
    }
    this.running = this.deliverAll().finally(() => {
      this.running = null;
      // They arrived after the last call of `next`.
      if (this.more) this.run();
    });
  }

  /** Runs once more, for at most `timeout` milliseconds, and closes the destination. */
  async end(timeout: number): Promise<void> {
    this.run();
    if (this.running) await atMost(timeout, this.running);
    this.ended = true;
    clearTimeout(this.retry);
    // A destination that hangs must not keep the process alive.
    await atMost(CLOSE_TIMEOUT, this.options.delivery.close());
  }

  private async deliverAll(): Promise<void> {
    const { options } = this;
    this.more = false;
    clearTimeout(this.retry);
    const slow = () =>
      setTimeout(() => options.reportFailure(new RecordNotKept('no answer in time')), options.timeout);
    let watch: NodeJS.Timeout | undefined;
    try {
      watch = slow();
      await this.openOnce();
      for (let batch = await this.next(); batch.length > 0; batch = await this.next()) {
        clearTimeout(watch);
        watch = slow();
        await options.delivery.deliver(batch);
        await options.markStored(batch);
        this.delay.reset();
      }
      options.reportDrained();
    } catch (error) {
      this.reportFailure(error);
    } finally {
      clearTimeout(watch);
    }
  }

  private next(): Promise<readonly SealedLine[]> {
    return this.options.next(this.options.delivery.batch);
  }

  private openOnce(): Promise<ChainHead | null> {
    this.opening ??= this.options.delivery.open().catch((error: unknown) => {
      this.opening = null;
      throw error;
    });
    return this.opening;
  }

  private reportFailure(error: unknown): void {
    this.options.reportFailure(error);
    this.more = false;
    clearTimeout(this.retry);
    if (this.ended) return;
    this.retry = setTimeout(() => this.run(), this.delay.next());
    this.retry.unref();
  }
}

const MIN_RETRY_DELAY = 250;
/** Less than the `Retry-After` of a refused call, which is five seconds: a destination that is back takes records before. */
const MAX_RETRY_DELAY = 2_000;

/** Delay before the next attempt in milliseconds: doubles each time, with jitter. */
class RetryDelay {
  private failures = 0;

  next(): number {
    const delay = Math.min(MIN_RETRY_DELAY * 2 ** this.failures, MAX_RETRY_DELAY);
    this.failures = Math.min(this.failures + 1, 16);
    return delay * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.failures = 0;
  }
}

/** The result of the work, or undefined after `milliseconds`; the work is not cancelled. */
async function atMost<T>(milliseconds: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), milliseconds);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
