import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { LAST_MOMENT } from '#core';
import {
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
  AuditQueryError,
  AuditTrail,
  readLimit,
  createMatcher,
  parseMoment,
  newestFirst,
} from '../audit-trail.js';
import { readLine } from '../chain/audit-chain.js';

/** The suffix of a rotated file. */
const PUT_ASIDE = /^\.\d{8}T\d{9}Z(-\d+)?$/;

/** The files of a file sink, oldest first: the rotated ones, then the one that is written. */
export async function filesOfSink(path: string): Promise<string[]> {
  const name = basename(path);
  const entries = await readdir(dirname(path)).catch((): string[] => []);
  const rotated = entries.filter(
    (entry) => entry.startsWith(name) && PUT_ASIDE.test(entry.slice(name.length)),
  );
  const present = entries.includes(name) ? [path] : [];
  return [...rotated.sort().map((entry) => join(dirname(path), entry)), ...present];
}

const CHUNK_BYTES = 262_144;
/** Bytes. A longer line is no record and is skipped. */
const LONGEST_LINE = 1_048_576;
/**
 * Milliseconds by which a record may be older than those before it in its file: a process whose sink was down delivers
 * late.
 */
const MAX_DISORDER = 3_600_000;

/** How much one search reads. */
export interface FileSearchLimits {
  readonly bytes: number;
  readonly records: number;
}

const LIMITS: FileSearchLimits = { bytes: 16 * 1_048_576, records: 50_000 };

interface SearchedFile {
  readonly path: string;
  /** A rotated file keeps its number. */
  readonly inode: number;
  readonly size: number;
}

/**
 * Searches the files of a sink backwards from the latest record, so that a page costs what it shows. Each search reads a
 * bounded number of bytes and records; its cursor continues there, also when nothing was found yet.
 */
export class FileAuditTrail extends AuditTrail {
  readonly reach = 'kept';

  constructor(
    private readonly path: string,
    private readonly limits: FileSearchLimits = LIMITS,
  ) {
    super();
  }

  async search({ cursor, ...query }: AuditQuery, signal?: AbortSignal): Promise<AuditPage> {
    const limit = readLimit(query);
    const matches = createMatcher(query);
    const reading = new FileReading(this.limits, {
      from: moment(query.from, 'from', -MAX_DISORDER),
      to: moment(query.to, 'to', MAX_DISORDER),
    });
    const found: AuditEntry[] = [];
    let next: string | null = null;
    const place = cursor === undefined ? null : readPlace(cursor);
    const files = await listSearchedFiles(this.path);
    const first = place === null ? files.length - 1 : files.findIndex(({ inode }) => inode === place.inode);
    if (place !== null && first < 0) throw new AuditQueryError('cursor: its file is not there any more');
    search: for (let index = first; index >= 0; index -= 1) {
      const { inode, size } = files[index] as SearchedFile;
      const handle = await openFile(files[index] as SearchedFile, this.path);
      if (!handle) continue;
      const end = index === first && place !== null ? Math.min(place.end, size) : size;
      try {
        for await (const { text, start } of reading.linesBefore(handle, end, signal)) {
          const entry = readLine(text) as unknown as AuditEntry | null;
          if (entry && matches(entry)) found.push(entry);
          if (!reading.counts(entry?.at) && found.length < limit) continue;
          next = start === 0 && index === 0 ? null : placeText({ inode, end: start });
          break search;
        }
      } finally {
        await handle.close();
      }
      if (reading.stoppedAt === null) continue;
      next = placeText({ inode, end: reading.stoppedAt });
      break;
    }
    if (reading.isPastRange) next = null;
    return {
      entries: found.sort(newestFirst),
      cursor: next,
      searched: { store: 'file', scope: 'replica', ...reading.report },
    };
  }
}

function moment(text: string | undefined, name: 'from' | 'to', shift: number): string | null {
  const time = parseMoment(text, name);
  return time === undefined ? null : new Date(Math.min(Date.parse(time) + shift, LAST_MOMENT)).toISOString();
}

async function listSearchedFiles(path: string): Promise<SearchedFile[]> {
  const files: SearchedFile[] = [];
  for (const one of await filesOfSink(path)) {
    const found = await lstat(one).catch(() => null);
    if (found?.isFile()) files.push({ path: one, inode: found.ino, size: found.size });
  }
  return files;
}

/** Null for a file that was removed meanwhile. One that was rotated meanwhile is opened under its new name. */
async function openFile({ path, inode }: SearchedFile, sink: string): Promise<FileHandle | null> {
  const at = async (name: string) => {
    const handle = await open(name, constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => null);
    if (!handle || (await handle.stat()).ino === inode) return handle;
    await handle.close();
    return null;
  };
  const handle = await at(path);
  if (handle) return handle;
  const moved = (await listSearchedFiles(sink)).find((file) => file.inode === inode);
  return moved ? at(moved.path) : null;
}

/** A place in the files: everything before it is still to be searched. */
interface Place {
  readonly inode: number;
  readonly end: number;
}

function placeText({ inode, end }: Place): string {
  return Buffer.from(JSON.stringify(['file', inode, end])).toString('base64url');
}

/** @throws AuditQueryError */
function readPlace(cursor: string): Place {
  try {
    const [kind, inode, end] = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as unknown[];
    if (kind === 'file' && Number.isSafeInteger(inode) && Number.isSafeInteger(end) && (end as number) >= 0)
      return { inode: inode as number, end: end as number };
  } catch {
    // Thrown below, as for any other invalid cursor.
  }
  throw new AuditQueryError('cursor: expected the one of an earlier page');
}

interface FoundLine {
  readonly text: string;
  /** Position of its first byte in the file. */
  readonly start: number;
}

/** One search: what it may read, and what it has read. */
class FileReading {
  /** Where reading stopped inside a file; null: it did not. */
  stoppedAt: number | null = null;
  isPastRange = false;
  private bytes = 0;
  private records = 0;
  private cut: 'bytes' | 'records' | null = null;
  private backTo: string | null = null;

  constructor(
    private readonly limits: FileSearchLimits,
    private readonly range: { readonly from: string | null; readonly to: string | null },
  ) {}

  get report() {
    return { records: this.records, bytes: this.bytes, cut: this.cut, back_to: this.backTo };
  }

  /** Counts a line. @returns whether it is the last that this search reads */
  counts(at: string | undefined): boolean {
    this.records += 1;
    if (at !== undefined) this.backTo = at;
    this.isPastRange = at !== undefined && this.range.from !== null && at < this.range.from;
    if (this.records >= this.limits.records && !this.isPastRange) this.cut = 'records';
    return this.isPastRange || this.cut !== null;
  }

  /** The complete lines before a position, the last first. */
  async *linesBefore(handle: FileHandle, end: number, signal?: AbortSignal): AsyncGenerator<FoundLine> {
    if (end === 0) return;
    if (this.isFull) return this.stopAt(end);
    if (await this.isLater(handle)) return;
    let position = end;
    let pending: Buffer = Buffer.alloc(0);
    /** Whether `pending` ends with a line end. Without one its last line is incomplete, or was too long. */
    let ended = false;
    while (position > 0) {
      signal?.throwIfAborted();
      if (this.isFull) return this.stopAt(position + pending.length);
      const length = Math.min(CHUNK_BYTES, position, this.limits.bytes - this.bytes);
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position - length);
      if (bytesRead < length) return;
      position -= length;
      this.bytes += length;
      const block: Buffer = Buffer.concat([buffer, pending]);
      let stop: number = ended ? block.length : block.lastIndexOf(LINE_END) + 1;
      ended = stop > 0;
      while (ended) {
        const before = stop < 2 ? -1 : block.lastIndexOf(LINE_END, stop - 2);
        if (before < 0) break;
        yield { text: block.toString('utf8', before + 1, stop - 1), start: position + before + 1 };
        stop = before + 1;
      }
      pending = block.subarray(0, stop);
      // Half of what may be read, so that every search gets further.
      if (pending.length <= Math.min(LONGEST_LINE, this.limits.bytes / 2)) continue;
      pending = Buffer.alloc(0);
      ended = false;
    }
    if (ended && pending.length > 0)
      yield { text: pending.toString('utf8', 0, pending.length - 1), start: 0 };
  }

  private get isFull(): boolean {
    return this.bytes >= this.limits.bytes;
  }

  private stopAt(position: number): void {
    this.cut = 'bytes';
    this.stoppedAt = position;
  }

  /** Whether the whole file is later than what is searched, by its first record. */
  private async isLater(handle: FileHandle): Promise<boolean> {
    const { to } = this.range;
    if (to === null) return false;
    // A part of what may be read, so that every search gets further.
    const length = Math.min(65_536, Math.ceil(this.limits.bytes / 4), this.limits.bytes - this.bytes);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, 0);
    this.bytes += bytesRead;
    const end = buffer.subarray(0, bytesRead).indexOf(LINE_END);
    const first = end < 0 ? null : readLine(buffer.toString('utf8', 0, end));
    return first !== null && first.at > to;
  }
}

const LINE_END = 0x0a;
