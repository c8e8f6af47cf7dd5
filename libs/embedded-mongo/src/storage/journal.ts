import {
  closeSync,
  existsSync,
  fdatasync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { crc32 } from 'node:zlib';
import { encodeDocument } from '../wire/encode.js';
import { Catalog } from './catalog.js';
import type { Change } from './change.js';
import { releaseLock, takeLock } from './file-lock.js';
import { applyRecord, toRecord, toRecords } from './journal-record.js';

/** Changes are on disk at the latest this long after they were answered, in milliseconds. */
const SYNC_MS = 100;
/** A file this much larger than its live data is rewritten when it is opened. */
const COMPACT_RATIO = 2;
const COMPACT_BYTES = 1024 * 1024;
/** Each frame: length of the content, its checksum, the content (one BSON document). */
const FRAME_HEAD = 8;

/** When changes go to the disk: before they are answered, or at the latest `SYNC_MS` after. */
export type FsyncMode = 'always' | 'interval';

/** The data file: an append-only list of checksummed changes. */
export class Journal {
  private pending: Buffer[] = [];
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();
  private failure: Error | undefined;
  private flushing = false;

  constructor(
    private readonly file: string,
    private readonly fd: number,
    private readonly fsync: FsyncMode = 'interval',
  ) {}

  /** What may be answered only now: nothing to wait for where changes go to the disk afterwards. */
  async settle(): Promise<void> {
    if (this.fsync === 'always' && (this.pending.length > 0 || this.flushing)) await this.sync();
  }

  append(changes: readonly Change[]): void {
    if (this.failure) throw this.failure;
    this.pending.push(frame(toRecord(changes)));
    this.timer ??= setTimeout(() => void this.sync().catch(() => undefined), SYNC_MS);
  }

  /** Resolves when everything appended so far is on disk. Errors: those of the file system, then and ever after. */
  sync(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.writing = this.writing.then(() => this.flush());
    return this.writing;
  }

  async close(): Promise<void> {
    try {
      await this.sync();
    } finally {
      closeSync(this.fd);
      releaseLock(this.file);
    }
  }

  private async flush(): Promise<void> {
    if (this.failure) throw this.failure;
    if (this.pending.length === 0) return;
    const bytes = Buffer.concat(this.pending);
    this.pending = [];
    this.flushing = true;
    try {
      let written = 0;
      while (written < bytes.length) written += writeSync(this.fd, bytes, written);
      await new Promise<void>((resolve, reject) =>
        fdatasync(this.fd, (error) => (error ? reject(error) : resolve())),
      );
    } catch (error) {
      // Data that could not be kept must not be promised again.
      this.failure = new Error('the data file cannot be written any more', { cause: error });
      throw this.failure;
    } finally {
      this.flushing = false;
    }
  }
}

function frame(record: Parameters<typeof encodeDocument>[0]): Buffer {
  const content = encodeDocument(record);
  const head = Buffer.allocUnsafe(FRAME_HEAD);
  head.writeUInt32LE(content.length, 0);
  head.writeUInt32LE(crc32(content), 4);
  return Buffer.concat([head, content]);
}

/**
 * Opens a data file and rebuilds its data. A torn last frame is cut off: it was never acknowledged as durable.
 * Errors: when another process holds the file, or when it is damaged before its end.
 */
export async function openJournal(
  file: string,
  fsync: FsyncMode = 'interval',
): Promise<{ journal: Journal; catalog: Catalog }> {
  takeLock(file);
  try {
    const catalog = new Catalog();
    const size = existsSync(file) ? replay(file, catalog, truncateSync) : 0;
    if (size > COMPACT_BYTES && size > liveBytes(catalog) * COMPACT_RATIO) rewrite(file, catalog);
    return { journal: new Journal(file, openSync(file, 'a', 0o600), fsync), catalog };
  } catch (error) {
    releaseLock(file);
    throw error;
  }
}

/** The data of a file that stays as it is. Errors: when it cannot be read or is damaged. */
export function loadCatalog(file: string): Catalog {
  const catalog = new Catalog();
  replay(file, catalog, (_, at) => {
    throw new Error(`the data file ${file} is damaged at byte ${at}`);
  });
  return catalog;
}

/** @param cut called with the start of a torn last frame */
function replay(file: string, catalog: Catalog, cut: (file: string, at: number) => void): number {
  const bytes = readFileSync(file);
  let at = 0;
  while (at < bytes.length) {
    const head = at + FRAME_HEAD;
    const end = head <= bytes.length ? head + bytes.readUInt32LE(at) : Infinity;
    const whole = end <= bytes.length;
    const content = whole ? bytes.subarray(head, end) : undefined;
    if (content === undefined || crc32(content) !== bytes.readUInt32LE(at + 4)) {
      if (whole && end < bytes.length) throw new Error(`the data file ${file} is damaged at byte ${at}`);
      cut(file, at);
      return at;
    }
    applyRecord(catalog, content);
    at = end;
  }
  return at;
}

const liveBytes = (catalog: Catalog): number =>
  [...catalog.all()].reduce((sum, one) => sum + one.dataBytes, 0);

/** Writes the present data to a new file and puts it in the place of the old one. */
function rewrite(file: string, catalog: Catalog): void {
  const fresh = `${file}.new`;
  const fd = openSync(fresh, 'w', 0o600);
  try {
    for (const record of toRecords(catalog)) writeSync(fd, frame(record));
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(fresh, file);
}
