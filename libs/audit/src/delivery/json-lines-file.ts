import { type FileHandle, lstat, rename } from 'node:fs/promises';
import { basename } from 'node:path';
import type { ChainHead } from '../audit-event.js';
import { readLine, type SealedLine } from '../chain/record-seal.js';
import { appendWhole, isStillAt, lastLine, openGuarded } from './guarded-file.js';
import type { DeliveryLog, RecordDelivery } from './record-delivery.js';

/** When what was written is forced onto the disk. */
export type FsyncPolicy = 'always' | 'interval' | 'never';

export interface JsonLinesOptions {
  readonly path: string;
  /** Bytes after which the file is put aside and a new one begun. */
  readonly maxBytes: number;
  /** Milliseconds after which the same happens; null: never for its age. */
  readonly maxAge: number | null;
  /** `always`: before anybody who waits is told. `interval`: within a second. `never`: when the system likes to. */
  readonly fsync: FsyncPolicy;
  readonly log: DeliveryLog;
}

const SYNC_INTERVAL = 1_000;

/** One record a line, in a file that only this user may read; full files are put aside under the time they were left. */
export class JsonLinesFile implements RecordDelivery {
  readonly name: string;
  readonly batch = 1_000;
  private handle: FileHandle | null = null;
  private size = 0;
  private begun = 0;
  private unsynced = false;
  private syncing: NodeJS.Timeout | undefined;
  /** What stands last in the file. */
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
        log.warn(`${this.name}: the last line was cut off by a crash: its ${torn} bytes are taken away`);
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

  async deliver(records: readonly SealedLine[]): Promise<void> {
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

  /** What was written and not forced onto the disk, or not crossed off in a buffer before a crash, is delivered again. */
  private withoutDelivered(records: readonly SealedLine[]): readonly SealedLine[] {
    const { already } = this;
    if (already === null) return records;
    return records.slice(records.findIndex(({ record }) => record.hash === already) + 1);
  }

  /** The file to write to: another one when this is full, old, or no longer where it was. */
  private async current(): Promise<FileHandle> {
    const { path, maxBytes, maxAge, log } = this.options;
    let { handle } = this;
    if (handle && !(await isStillAt(path, handle))) {
      log.warn(`${this.name}: the file was taken away while it was written`);
      await this.leave();
      handle = null;
    } else if (handle) {
      const { size } = await handle.stat();
      if (size !== this.size) log.warn(`${this.name}: somebody else changed the file`);
      this.size = size;
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
        this.options.log.warn(`${this.name}: what was written could not be forced onto the disk`);
      });
    }, SYNC_INTERVAL).unref();
  }
}
