import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { ChainHead } from '../audit-record.js';
import { readLine, type SealedLine } from '../chain/audit-chain.js';
import { assertRecords, assertRegular, withFile } from './file-problem.js';
import type { DeliveryLog, RecordDelivery } from './record-delivery.js';

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants;

/**
 * Opens a file for appending, readable and writable by this user only; creates it and its folder if needed.
 * @throws FileProblem also for a symbolic or hard link, or anything but a regular file
 */
function openGuarded(path: string): Promise<FileHandle> {
  return withFile(path, async () => {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const handle = await open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600).catch(
      async (error: unknown) => {
        const found = await lstat(path).catch(() => null);
        if (found) assertRegular(path, found);
        throw error;
      },
    );
    try {
      const stats = await handle.stat();
      assertRegular(path, stats);
      await assertRecords(path, handle);
      if ((stats.mode & 0o077) !== 0) await handle.chmod(0o600);
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  });
}

/** Whether the path still refers to the opened file. */
async function isStillAt(path: string, handle: FileHandle): Promise<boolean> {
  const [there, held] = await Promise.all([lstat(path).catch(() => null), handle.stat()]);
  return there !== null && there.ino === held.ino && there.dev === held.dev;
}

/** Appends all of the text. On an error a partial line is removed, unless another process has appended meanwhile. */
export async function appendWhole(handle: FileHandle, text: string): Promise<number> {
  const bytes = Buffer.from(text, 'utf8');
  const { size } = await handle.stat();
  let written = 0;
  try {
    while (written < bytes.length) {
      const { bytesWritten } = await handle.write(bytes, written);
      written += bytesWritten;
    }
  } catch (error) {
    const after = await handle.stat();
    if (written > 0 && after.size === size + written) await handle.truncate(size);
    throw error;
  }
  return bytes.length;
}

const CHUNK_BYTES = 65_536;

/** The last complete line, and the number of bytes of an incomplete line after it. */
async function lastLine(handle: FileHandle): Promise<{ line: string | null; torn: number }> {
  const { size } = await handle.stat();
  let tail = Buffer.alloc(0);
  for (let start = size; start > 0;) {
    const length = Math.min(CHUNK_BYTES, start);
    start -= length;
    const { buffer } = await handle.read(Buffer.alloc(length), 0, length, start);
    tail = Buffer.concat([buffer, tail]);
    const end = tail.lastIndexOf(0x0a);
    if (end < 0) continue;
    const begin = end === 0 ? -1 : tail.lastIndexOf(0x0a, end - 1);
    if (begin < 0 && start > 0) continue;
    return { line: tail.toString('utf8', begin + 1, end), torn: tail.length - end - 1 };
  }
  return { line: null, torn: tail.length };
}

/** When written data is flushed to the disk. */
export type FsyncPolicy = 'always' | 'interval' | 'never';

export interface JsonLinesOptions {
  readonly path: string;
  /** Size after which the file is rotated. */
  readonly maxBytes: number;
  /** Age in milliseconds after which the file is rotated; null: never. */
  readonly maxAge: number | null;
  /** `always`: before a delivery succeeds. `interval`: within a second. `never`: left to the operating system. */
  readonly fsync: FsyncPolicy;
  readonly log: DeliveryLog;
}

const SYNC_INTERVAL = 1_000;

/**
 * One record per line, in a file that only this user may read. A rotated file is renamed with the time of its
 * rotation.
 */
export class JsonLinesFile implements RecordDelivery {
  readonly name: string;
  readonly batch = 1_000;
  private handle: FileHandle | null = null;
  private size = 0;
  private begun = 0;
  private unsynced = false;
  private syncing: NodeJS.Timeout | undefined;
  /** Hash of the last record in the file. */
  private already: string | null = null;

  constructor(private readonly options: JsonLinesOptions) {
    this.name = `file ${basename(options.path)}`;
  }

  async open(): Promise<ChainHead | null> {
    const { path, log } = this.options;
    const handle = await openGuarded(path);
    try {
      const { line, torn } = await lastLine(handle);
      const { size, birthtimeMs } = await handle.stat();
      if (torn > 0) {
        log.warn(`${this.name}: the last line is incomplete after a crash: its ${torn} bytes are removed`);
        await handle.truncate(size - torn);
      }
      this.size = size - torn;
      this.begun = this.size > 0 ? birthtimeMs : Date.now();
      const last = line === null ? null : readLine(line);
      this.already = last?.hash ?? null;
      this.handle = handle;
      return last && { chain: last.chain, seq: last.seq, hash: last.hash };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  deliver(records: readonly SealedLine[]): Promise<void> {
    return withFile(this.options.path, () => this.append(records));
  }

  private async append(records: readonly SealedLine[]): Promise<void> {
    const fresh = this.withoutDelivered(records);
    if (fresh.length > 0) {
      const handle = await this.current();
      this.size += await appendWhole(handle, fresh.map(({ line }) => `${line}\n`).join(''));
      this.already = fresh.at(-1)?.record.hash ?? null;
      this.unsynced = true;
    }
    if (!this.unsynced) return;
    if (this.options.fsync === 'always') await this.sync();
    else if (this.options.fsync === 'interval') this.syncSoon();
  }

  async close(): Promise<void> {
    clearTimeout(this.syncing);
    await this.leave();
  }

  /**
   * Skips records that the file already holds: after a crash, records that were not flushed or not removed from a
   * buffer are delivered again.
   */
  private withoutDelivered(records: readonly SealedLine[]): readonly SealedLine[] {
    const { already } = this;
    if (already === null) return records;
    return records.slice(records.findIndex(({ record }) => record.hash === already) + 1);
  }

  /** The file to write to. It is replaced when it is full, too old, or was moved. */
  private async current(): Promise<FileHandle> {
    const { path, maxBytes, maxAge, log } = this.options;
    let { handle } = this;
    if (handle && !(await isStillAt(path, handle))) {
      log.warn(`${this.name}: the file was moved or deleted while it was open`);
      await this.leave();
      handle = null;
    } else if (handle) {
      const { size } = await handle.stat();
      if (size !== this.size) log.warn(`${this.name}: another process changed the file`);
      this.size = size;
      // After the clock was set back the file is as young as it can be.
      this.begun = Math.min(this.begun, Date.now());
      if (size > 0 && (size >= maxBytes || (maxAge !== null && Date.now() - this.begun >= maxAge))) {
        await this.leave();
        await this.putAside();
        handle = null;
      }
    }
    if (handle) return handle;
    this.handle = await openGuarded(path);
    this.size = (await this.handle.stat()).size;
    this.begun = Date.now();
    return this.handle;
  }

  private async putAside(): Promise<void> {
    const { path } = this.options;
    const stamp = new Date().toISOString().replaceAll(/[-:.]/g, '');
    for (let again = 0; ; again += 1) {
      const aside = `${path}.${stamp}${again === 0 ? '' : `-${again}`}`;
      if (await lstat(aside).catch(() => null)) continue;
      return rename(path, aside);
    }
  }

  private async leave(): Promise<void> {
    const { handle } = this;
    if (!handle) return;
    if (this.unsynced && this.options.fsync !== 'never') await this.sync();
    this.handle = null;
    await handle.close();
  }

  private async sync(): Promise<void> {
    await this.handle?.datasync();
    this.unsynced = false;
  }

  private syncSoon(): void {
    this.syncing ??= setTimeout(() => {
      this.syncing = undefined;
      this.sync().catch(() => {
        this.options.log.warn(`${this.name}: written records could not be flushed to the disk`);
      });
    }, SYNC_INTERVAL).unref();
  }
}

/** Bytes that are read for one batch. */
const READ_SIZE = 1_048_576;

/** A queue of records on disk. A second file holds the offset of the first record that is not delivered yet. */
export class SpoolFile {
  private handle: FileHandle | null = null;
  private size = 0;
  private offset = 0;
  /** Serialises changes. */
  private queue: Promise<unknown> = Promise.resolve();

  /** @param maxBytes maximum size of the file */
  constructor(
    private readonly path: string,
    private readonly maxBytes: number,
  ) {}

  get isEmpty(): boolean {
    return this.size === this.offset;
  }

  get isFull(): boolean {
    return this.size >= this.maxBytes;
  }

  open(): Promise<void> {
    return this.inTurn(async () => {
      if (this.handle) return;
      const handle = await openGuarded(this.path);
      const { torn } = await lastLine(handle);
      this.size = (await handle.stat()).size - torn;
      if (torn > 0) await handle.truncate(this.size);
      const noted = Number(await readFile(this.offsetPath, 'utf8').catch(() => '0'));
      this.offset = Number.isSafeInteger(noted) && noted >= 0 && noted <= this.size ? noted : 0;
      this.handle = handle;
    });
  }

  /** Resolves when the records are on disk. */
  append(records: readonly SealedLine[]): Promise<void> {
    const text = records.map(({ line }) => `${line}\n`).join('');
    return this.inTurn(() =>
      withFile(this.path, async () => {
        const handle = this.requireHandle();
        this.size += await appendWhole(handle, text);
        await handle.datasync();
      }),
    );
  }

  /** The oldest queued records; unreadable lines are skipped and counted. */
  next(limit: number): Promise<{ records: SealedLine[]; bytes: number; unreadable: number }> {
    return this.inTurn(async () => {
      const wanted = Math.min(READ_SIZE, this.size - this.offset);
      const whole = await this.linesAt(wanted);
      // A single record may be longer than one read.
      const text = whole.includes(0x0a) ? whole : await this.linesAt(this.size - this.offset);
      const records: SealedLine[] = [];
      let bytes = 0;
      let unreadable = 0;
      while (records.length < limit) {
        const end = text.indexOf(0x0a, bytes);
        if (end < 0) break;
        const line = text.toString('utf8', bytes, end);
        const record = readLine(line);
        if (record) records.push({ record, line });
        else unreadable += 1;
        bytes = end + 1;
      }
      return { records, bytes, unreadable };
    });
  }

  /** Marks that many bytes as delivered. */
  advance(bytes: number): Promise<void> {
    return this.inTurn(async () => {
      this.offset += bytes;
      if (this.isEmpty) await this.startAnew(Buffer.alloc(0));
      else if (this.offset > this.maxBytes / 2)
        await this.startAnew(await this.linesAt(this.size - this.offset));
      else await writeFile(this.offsetPath, String(this.offset), { mode: 0o600 });
    });
  }

  close(): Promise<void> {
    return this.inTurn(async () => {
      await this.handle?.close();
      this.handle = null;
    });
  }

  /** The offset is written first: a crash in between repeats records and loses none. */
  private async startAnew(rest: Buffer): Promise<void> {
    await writeFile(this.offsetPath, '0', { mode: 0o600 });
    if (rest.length === 0) {
      await this.requireHandle().truncate(0);
    } else {
      await writeFile(`${this.path}.new`, rest, { mode: 0o600, flush: true });
      await rename(`${this.path}.new`, this.path);
      await this.requireHandle().close();
      this.handle = await openGuarded(this.path);
    }
    this.size = rest.length;
    this.offset = 0;
  }

  private async linesAt(length: number): Promise<Buffer> {
    const { buffer, bytesRead } = await this.requireHandle().read(
      Buffer.alloc(length),
      0,
      length,
      this.offset,
    );
    return buffer.subarray(0, bytesRead);
  }

  private get offsetPath(): string {
    return `${this.path}.offset`;
  }

  private requireHandle(): FileHandle {
    if (!this.handle) throw new Error('the spool is not open');
    return this.handle;
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.queue.then(work);
    this.queue = turn.catch(() => undefined);
    return turn;
  }
}
