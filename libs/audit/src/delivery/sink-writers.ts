import { createHash, createHmac } from 'node:crypto';
import { sendPinned, type ResolveHost } from '#core';
import type { ChainHead } from '../audit-record.js';
import type { SealedLine } from '../chain/audit-chain.js';
import {
  type DeliveryLog,
  DeliveryWorker,
  errorName,
  type RecordDelivery,
  RecordNotKept,
  type SinkState,
  type SinkWriter,
  WebhookRefused,
} from './record-delivery.js';
import type { SpoolFile } from './record-files.js';
import { WaitingRefusals } from './waiting-refusals.js';

/** Maximum number of queued records. */
const MAX_WAITING = 10_000;

interface Waiting {
  readonly record: SealedLine;
  resolve(): void;
  notKept(reason: RecordNotKept): void;
}

/**
 * `onFailure: refuse`. The maker of a record waits until it is stored. After a failure new records are refused until
 * all queued ones have been delivered.
 */
export class RefusingSinkWriter implements SinkWriter {
  readonly name: string;
  private readonly waiting: Waiting[] = [];
  private readonly refusals = new WaitingRefusals();
  private readonly worker: DeliveryWorker;
  private failing = false;
  private closed = false;

  /** @param timeout milliseconds for each attempt */
  constructor(
    delivery: RecordDelivery,
    timeout: number,
    private readonly log: DeliveryLog,
  ) {
    this.name = delivery.name;
    this.worker = new DeliveryWorker({
      delivery,
      timeout,
      next: (limit) => Promise.resolve(this.waiting.slice(0, limit).map(({ record }) => record)),
      markStored: (records) => {
        this.refusals.remove(records);
        for (const { resolve: kept } of this.waiting.splice(0, records.length)) kept();
      },
      reportFailure: (error) => this.reportFailure(error),
      reportDrained: () => this.reportRecovery(),
    });
  }

  get state(): SinkState {
    return this.failing || this.closed || this.isFull ? 'down' : 'up';
  }

  get isFull(): boolean {
    return this.waiting.length >= MAX_WAITING;
  }

  isExcess(content: object): boolean {
    return this.refusals.isExcess(content);
  }

  open(): Promise<ChainHead | null> {
    return this.worker.open();
  }

  keep(record: SealedLine, begun = true): Promise<void> {
    if (!begun) this.refusals.add(record);
    return new Promise((kept, notKept) => {
      this.waiting.push({ record, resolve: kept, notKept });
      if (this.state === 'down') notKept(new RecordNotKept(this.name));
      else this.worker.run();
    });
  }

  async close(timeout: number): Promise<void> {
    await this.worker.end(timeout);
    this.closed = true;
    if (this.waiting.length === 0) return;
    this.log.warn(
      `${this.name}: ${this.waiting.length} audit records could not be delivered before the shutdown`,
    );
    this.giveUpWaiting();
  }

  private reportRecovery(): void {
    if (this.failing) this.log.log(`${this.name}: audit records are kept again`);
    this.failing = false;
  }

  private reportFailure(error: unknown): void {
    if (!this.failing)
      this.log.warn(`${this.name}: audit records cannot be kept (${errorName(error)}): calls are refused`);
    this.failing = true;
    this.giveUpWaiting();
  }

  /** Rejects the waiting promises; the records stay queued. */
  private giveUpWaiting(): void {
    for (const { notKept } of this.waiting) notKept(new RecordNotKept(this.name));
  }
}

/** Maximum number of records in memory. */
const MAX_IN_MEMORY = 10_000;
/** Records in memory from which on a destination takes them too slowly. */
const TOO_SLOW = MAX_IN_MEMORY / 2;

/**
 * `onFailure: buffer`. While the destination takes records as they come nobody waits. Otherwise they go to disk in order, and
 * the maker of a record waits for the disk. A full buffer or disk refuses.
 */
export class BufferingSinkWriter implements SinkWriter {
  readonly name: string;
  private readonly memory: SealedLine[] = [];
  private readonly refusals = new WaitingRefusals();
  private readonly worker: DeliveryWorker;
  private buffering = false;
  private diskFailed = false;
  /** Bytes of the spool that the current batch came from; 0: it came from memory. */
  private fromSpool = 0;
  /** Serialises changes of memory and disk. */
  private changes: Promise<void> = Promise.resolve();

  /** @param timeout milliseconds for each attempt */
  constructor(
    delivery: RecordDelivery,
    timeout: number,
    private readonly spool: SpoolFile,
    private readonly log: DeliveryLog,
  ) {
    this.name = delivery.name;
    this.worker = new DeliveryWorker({
      delivery,
      timeout,
      next: (limit) => this.next(limit),
      markStored: (records) => this.markStored(records),
      reportFailure: (error) => this.reportFailure(error),
      reportDrained: () => this.reportRecovery(),
    });
  }

  get state(): SinkState {
    if (this.diskFailed || this.spool.isFull || this.isFull) return 'down';
    return this.buffering ? 'buffering' : 'up';
  }

  get isFull(): boolean {
    return this.memory.length >= MAX_IN_MEMORY;
  }

  isExcess(content: object): boolean {
    return this.refusals.isExcess(content);
  }

  async open(): Promise<ChainHead | null> {
    try {
      await this.spool.open();
    } catch (error) {
      this.reportDiskFailure(error);
    }
    this.buffering = !this.spool.isEmpty;
    if (this.buffering) this.log.warn(`${this.name}: earlier audit records are delivered first`);
    const head = await this.worker.open();
    this.worker.run();
    return head;
  }

  keep(record: SealedLine, begun = true): Promise<void> | undefined {
    if (!begun) this.refusals.add(record);
    this.memory.push(record);
    if (this.memory.length >= TOO_SLOW) this.beginBuffering('they wait for too long');
    if (this.state === 'up') {
      this.worker.run();
      return undefined;
    }
    return this.spill().then(() => {
      if (this.diskFailed) throw new RecordNotKept(this.name);
    });
  }

  async close(timeout: number): Promise<void> {
    await this.worker.end(timeout);
    if (this.memory.length > 0) {
      this.buffering = true;
      await this.spill();
    }
    if (this.memory.length > 0)
      this.log.warn(
        `${this.name}: ${this.memory.length} audit records could not be written before the shutdown`,
      );
    await this.spool.close();
  }

  private async next(limit: number): Promise<readonly SealedLine[]> {
    if (this.buffering) await this.spill();
    this.fromSpool = 0;
    if (this.spool.isEmpty) return this.memory.slice(0, limit);
    const { records, bytes, unreadable } = await this.spool.next(limit);
    if (unreadable > 0) this.log.warn(`${this.name}: lines of the buffer that are no records: ${unreadable}`);
    if (records.length === 0 && bytes > 0) {
      await this.spool.advance(bytes);
      return this.next(limit);
    }
    this.fromSpool = bytes;
    return records;
  }

  private markStored(records: readonly SealedLine[]): Promise<void> {
    this.refusals.remove(records);
    return this.inTurn(async () => {
      if (this.fromSpool > 0) await this.spool.advance(this.fromSpool);
      else if (this.memory[0] === records[0]) this.memory.splice(0, records.length);
      // The batch was spilled to disk during its delivery, and is the first there.
      else await this.spool.advance(countBytes(records));
      this.fromSpool = 0;
    });
  }

  private reportRecovery(): void {
    if (this.buffering) this.log.log(`${this.name}: audit records are delivered again`);
    this.buffering = false;
    this.diskFailed = false;
    // The lines of some may have been unreadable.
    if (this.memory.length === 0 && this.spool.isEmpty) this.refusals.clear();
  }

  private reportFailure(error: unknown): void {
    this.beginBuffering(errorName(error));
  }

  private beginBuffering(why: string): void {
    if (!this.buffering)
      this.log.warn(`${this.name}: audit records are not accepted (${why}): they are buffered on disk`);
    this.buffering = true;
  }

  private reportDiskFailure(error: unknown): void {
    if (!this.diskFailed)
      this.log.warn(
        `${this.name}: the audit buffer cannot be written (${errorName(error)}): calls are refused`,
      );
    this.diskFailed = true;
  }

  /** Moves records from memory to disk, in order. */
  private spill(): Promise<void> {
    return this.inTurn(async () => {
      const leaving = this.memory.slice(0);
      if (leaving.length === 0) return;
      try {
        await this.spool.open();
        await this.spool.append(leaving);
        this.memory.splice(0, leaving.length);
        this.diskFailed = false;
      } catch (error) {
        this.reportDiskFailure(error);
      }
    });
  }

  private inTurn(change: () => Promise<void>): Promise<void> {
    const turn = this.changes.then(change);
    this.changes = turn.catch(() => undefined);
    return turn;
  }
}

function countBytes(records: readonly SealedLine[]): number {
  return records.reduce((sum, { line }) => sum + Buffer.byteLength(line) + 1, 0);
}

/** Time and HMAC-SHA256 of `<time>.<body>`: `t=<seconds>,v1=<hex>`. */
export const SIGNATURE_HEADER = 'X-Parley-Signature';

export interface SignedPost {
  readonly url: string;
  readonly secret: string;
  /** JSON. */
  readonly body: string;
  /** Milliseconds. */
  readonly timeout: number;
  readonly stop: AbortSignal;
  /** Default: as the system resolves names. */
  readonly resolve?: ResolveHost;
}

/**
 * Posts a signed body. Redirects are not followed, and a name must not lead to this machine. @throws unless the
 * answer is a success
 */
export async function postSigned({ url, secret, body, timeout, stop, resolve }: SignedPost): Promise<void> {
  const seconds = Math.floor(Date.now() / 1000);
  const signature = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
  const response = await sendPinned(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      [SIGNATURE_HEADER]: `t=${seconds},v1=${signature}`,
    },
    body,
    rule: 'elsewhere',
    resolve,
    signal: AbortSignal.any([stop, AbortSignal.timeout(timeout)]),
  });
  await response.body?.cancel();
  if (!response.ok) throw new WebhookRefused(response.status);
}

export interface WebhookOptions {
  readonly url: string;
  /** Key of the signature. */
  readonly secret: string;
  /** Milliseconds for each attempt. */
  readonly timeout: number;
}

/** Posts records in batches. Each record arrives at least once; `chain` and `seq` identify repetitions. */
export class WebhookDelivery implements RecordDelivery {
  readonly name: string;
  readonly batch = 200;
  private readonly stop = new AbortController();

  constructor(private readonly options: WebhookOptions) {
    // The URL may hold a secret, so the name shows a digest.
    this.name = `webhook ${createHash('sha256').update(options.url).digest('hex').slice(0, 8)}`;
  }

  /** A webhook cannot be asked for its latest record. */
  open(): Promise<null> {
    return Promise.resolve(null);
  }

  deliver(records: readonly SealedLine[]): Promise<void> {
    const body = `{"type":"audit.records","records":[${records.map(({ line }) => line).join(',')}]}`;
    return postSigned({ ...this.options, body, stop: this.stop.signal });
  }

  close(): Promise<void> {
    this.stop.abort();
    return Promise.resolve();
  }
}
