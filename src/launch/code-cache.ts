import { createHash } from 'node:crypto';
import {
  closeSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { cachedDataVersionTag } from 'node:v8';
import { Script } from 'node:vm';
import { crc32 } from 'node:zlib';

/** Milliseconds after the start at which the code cache is written: what a start compiles is compiled by then. */
const WRITTEN_AFTER = 3_000;

/** Bytes of the checksum in front of the cached data: V8 does not check what it reads. */
const CHECKSUM_BYTES = 4;

/** Around the file: the parameters that Node gives a CommonJS file, and `importOutside`. */
const MODULE_PREFIX = Buffer.from(
  '(function (exports, require, module, __filename, __dirname, importOutside) {',
);
const MODULE_SUFFIX = Buffer.from('\n})');

/** Files of one bundle that are kept: one for each version and set of flags of Node that start it. */
const MOST_FILES = 8;

/**
 * Runs a CommonJS file that consists of ASCII, with V8's code cache beside it: `.code-cache/` in the folder of the file. Without a
 * usable cache the file is compiled, and the cache is written for the next start. Where that folder cannot be written, nothing is.
 *
 * The cache is code: it is read only from a folder and a file that nobody but this user, or root, can write. Its name is a hash of
 * the content of the file and of what V8 compiles for (version, flags, processor).
 * A script has no `import()` of its own: the file calls `importOutside`.
 * @returns the exports of the file
 */
export function runCached(file: string): unknown {
  const content = readFileSync(file);
  const folder = join(dirname(file), '.code-cache');
  const kept = join(folder, cacheName(content));
  const cachedData = readCache(folder, kept);
  // Text made of bytes stays outside of V8's heap; joined text would be copied into it.
  const text = Buffer.concat([MODULE_PREFIX, content, MODULE_SUFFIX]).toString('latin1');
  const script = new Script(text, { filename: file, cachedData });
  if (cachedData === undefined || script.cachedDataRejected === true) writeLater(script, folder, kept);
  const module = { exports: {} as unknown };
  const run = script.runInThisContext() as (...args: unknown[]) => void;
  const importOutside = (specifier: string): Promise<unknown> => import(specifier);
  run(module.exports, createRequire(file), module, file, dirname(file), importOutside);
  return module.exports;
}

function cacheName(content: Buffer): string {
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 32);
  return `${hash}-${process.version}-${process.arch}-${cachedDataVersionTag().toString(16)}`;
}

/** Whether only this user and root can write it. Unknown on systems without user ids, where no cache is used. */
function isOurs(stats: Stats): boolean {
  const user = process.getuid?.();
  return user !== undefined && (stats.uid === user || stats.uid === 0) && (stats.mode & 0o022) === 0;
}

function readCache(folder: string, file: string): Buffer | undefined {
  try {
    const stats = lstatSync(folder);
    if (!stats.isDirectory() || !isOurs(stats)) return undefined;
    const fd = openSync(file, 'r');
    try {
      if (!isOurs(fstatSync(fd))) return undefined;
      const bytes = readFileSync(fd);
      const data = bytes.subarray(CHECKSUM_BYTES);
      return bytes.length > CHECKSUM_BYTES && crc32(data) === bytes.readUInt32LE(0) ? data : undefined;
    } finally {
      closeSync(fd);
    }
  } catch {
    return undefined;
  }
}

/** Writes the cache when the process has run for a while or ends, whichever comes first. V8 would reject one of other flags. */
function writeLater(script: Script, folder: string, file: string): void {
  const tag = cachedDataVersionTag();
  const write = (): void => {
    clearTimeout(timer);
    process.off('exit', write);
    if (cachedDataVersionTag() === tag) writeCache(script, folder, file);
  };
  const timer = setTimeout(write, WRITTEN_AFTER).unref();
  process.once('exit', write);
}

function writeCache(script: Script, folder: string, file: string): void {
  const fresh = `${file}.${process.pid}.${process.hrtime.bigint()}`;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    const stats = lstatSync(folder);
    if (!stats.isDirectory() || !isOurs(stats)) return;
    // Opened first: the data takes longer to make, and is useless if nothing can be written.
    const fd = openSync(fresh, 'wx', 0o644);
    try {
      const data = script.createCachedData();
      const checksum = Buffer.alloc(CHECKSUM_BYTES);
      checksum.writeUInt32LE(crc32(data));
      writeFileSync(fd, Buffer.concat([checksum, data]));
    } finally {
      closeSync(fd);
    }
    // In one step: another process that starts now reads all of it or nothing.
    renameSync(fresh, file);
    removeOldest(folder);
  } catch {
    // A start without a cache is only slower.
    rmSync(fresh, { force: true });
  }
}

/** Those of earlier contents, versions and flags. */
function removeOldest(folder: string): void {
  const files = readdirSync(folder)
    .map((name) => join(folder, name))
    .map((path) => ({ path, written: lstatSync(path).mtimeMs }))
    .sort((one, other) => other.written - one.written);
  for (const { path } of files.slice(MOST_FILES)) rmSync(path, { force: true });
}
