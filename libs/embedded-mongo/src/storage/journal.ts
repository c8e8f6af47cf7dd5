import {
  closeSync,
  existsSync,
  fdatasync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { crc32 } from 'node:zlib';
import { Binary, UUID } from 'bson';
import { type Document, isDocument } from '../bson/document.js';
import { decodeDocument } from '../wire/decode.js';
import { encodeDocument } from '../wire/encode.js';
import { readRawDocument, readRawDocuments } from '../wire/raw-bson.js';
import { Catalog, type Collection } from './catalog.js';
import { type Change, type Draft, draftFromRaw, type StoredDocument } from './change.js';
import type { IndexSpec } from './index-spec.js';

const toLockPath = (file: string): string => `${file}.lock`;

/** When this process started, in epoch seconds; the same in all its threads. */
const startedAt = Math.round(Date.now() / 1000 - process.uptime());

/** Reserves a file for this process. Errors: an Error when another process has it, or where no file can be made. */
function takeLock(file: string): void {
  const lock = toLockPath(file);
  for (;;) {
    try {
      const fd = openSync(lock, 'wx', 0o600);
      writeSync(fd, `${process.pid} ${startedAt}`);
      closeSync(fd);
      return;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT')
        throw new Error(
          `the data file ${file} cannot be made: make the folder ${dirname(resolve(file))} first`,
          {
            cause: error,
          },
        );
      if (code !== 'EEXIST')
        throw new Error(`the data file ${file} cannot be made (${code}): name another`, { cause: error });
      if (isHeld(lock))
        throw new Error(`the data file ${file} is in use; if no process uses it, remove ${lock}`, {
          cause: error,
        });
      rmSync(lock, { force: true });
    }
  }
}

function releaseLock(file: string): void {
  rmSync(toLockPath(file), { force: true });
}

/** A lock whose process is gone was left behind by a crash. */
function isHeld(lock: string): boolean {
  const [pid = 0, started = 0] = readFileSync(lock, 'utf8').split(' ').map(Number);
  if (!Number.isInteger(pid) || pid <= 0) return false;
  // In a container the next process often has the number of the last one.
  if (pid === process.pid) return Math.abs(started - startedAt) <= 2;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function changeRecord(change: Change): Document {
  if (change.kind === 'dropDatabase') return { o: change.kind, db: change.db };
  const base = { o: change.kind, db: change.ns.db, coll: change.ns.coll };
  switch (change.kind) {
    case 'insert':
    case 'update':
    case 'replace':
      return { ...base, d: change.after.raw };
    case 'delete':
      return { ...base, id: change.before.document['_id'] };
    case 'create':
      return { ...base, options: change.options, uuid: change.uuid };
    case 'modify':
      return { ...base, options: change.options };
    case 'drop':
      return base;
    case 'rename':
      return { ...base, toDb: change.to.db, toColl: change.to.coll };
    case 'createIndexes':
    case 'dropIndexes':
    case 'modifyIndex':
      return { ...base, spec: change.spec };
  }
}

/** The records that rebuild a catalog from nothing. */
function* toRecords(catalog: Catalog): Generator<Document> {
  for (const collection of catalog.all()) {
    const { db, coll } = collection.ns;
    yield { c: [{ o: 'create', db, coll, options: collection.options, uuid: collection.uuid }] };
    for (const stored of collection.snapshotRecords().range()) {
      yield { c: [{ o: 'insert', db, coll, d: stored.raw }] };
    }
    for (const { spec } of collection.indexes.slice(1)) yield { c: [{ o: 'createIndexes', db, coll, spec }] };
  }
}

/** Errors: an Error when the change does not fit the data before it. */
function applyChange(catalog: Catalog, raw: Buffer): void {
  const change = decodeDocument(raw);
  const kind = String(change['o']) as Change['kind'];
  const db = String(change['db']);
  const coll = String(change['coll']);
  const options = isDocument(change['options']) ? change['options'] : {};
  if (kind === 'dropDatabase') return;
  if (kind === 'create') {
    const uuid = change['uuid'];
    catalog.create(db, coll, options, uuid instanceof Binary ? new UUID(uuid.value()) : undefined);
    return;
  }
  const collection = catalog.find(db, coll);
  if (!collection) throw new Error(`the data file changes ${db}.${coll} before creating it`);
  const spec = change['spec'] as IndexSpec;
  if (kind === 'insert') collection.insert(draftOfRecord(raw));
  else if (kind === 'update' || kind === 'replace') {
    const draft = draftOfRecord(raw);
    collection.replace(present(collection, draft.document['_id']), draft);
  } else if (kind === 'delete') collection.remove(present(collection, change['id']));
  else if (kind === 'modify') collection.options = options;
  else if (kind === 'drop') catalog.drop(db, coll);
  else if (kind === 'rename') catalog.rename(collection, String(change['toDb']), String(change['toColl']));
  else if (kind === 'createIndexes') collection.addIndex(spec);
  else if (kind === 'dropIndexes') collection.dropIndex(spec.name);
  else collection.changeIndex(spec);
}

function present(collection: Collection, id: unknown): StoredDocument {
  const stored = collection.byId(id);
  if (!stored)
    throw new Error(`the data file changes a document of ${collection.fullName} that is not there`);
  return stored;
}

/** The stored bytes themselves, so that a reload gives back exactly what was stored. */
function draftOfRecord(change: Buffer): Draft {
  const bytes = readRawDocument(change, 'd');
  if (!bytes) throw new Error('the data file holds a write without its document');
  return draftFromRaw(bytes);
}

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
    this.pending.push(frame({ c: changes.map(changeRecord) }));
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
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory())
    throw new Error(`the data file ${file} is a folder: name a file in it`);
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
      if (at === 0 && !isTornFrame(bytes))
        throw new Error(`${file} is no data file of this database and stays as it is: name another`);
      if (whole && end < bytes.length) throw new Error(`the data file ${file} is damaged at byte ${at}`);
      cut(file, at);
      return at;
    }
    const changes = readRawDocuments(content, 'c');
    if (!changes) throw new Error('the data file holds a record without changes');
    for (const change of changes) applyChange(catalog, change);
    at = end;
  }
  return at;
}

/** Whether bytes begin as a frame does: the length of its content, its checksum, and the same length in the content. */
const isTornFrame = (bytes: Buffer): boolean =>
  bytes.length >= FRAME_HEAD + 4 && bytes.readUInt32LE(0) === bytes.readUInt32LE(FRAME_HEAD);

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
