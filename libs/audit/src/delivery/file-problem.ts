import { constants, type Stats } from 'node:fs';
import { access, type FileHandle, lstat, open, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { readLine } from '../chain/audit-chain.js';

/** A file of records that cannot be used, and what its operator does about it. */
export class FileProblem extends Error {
  /** A constant name: `instanceof` fails where two copies of the package are loaded. */
  override readonly name = 'FileProblem';

  constructor(
    readonly found: string,
    readonly remedy: string,
    options?: ErrorOptions,
  ) {
    super(`${found}: ${remedy}`, options);
  }
}

/** What an error of the file system means for a file that is to be written. */
function toProblem(error: unknown, path: string): FileProblem {
  if (error instanceof FileProblem) return error;
  const folder = dirname(path);
  const { code = 'unknown fault' } = error as NodeJS.ErrnoException;
  const problem = (found: string, remedy: string) =>
    new FileProblem(`${found} (${code})`, remedy, { cause: error });
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return problem(
        `this user may not write ${path}`,
        `let the user of the service write ${folder} and what is in it`,
      );
    case 'ENOENT':
      return problem(`there is no folder ${folder}`, 'make it, or name another path');
    case 'ENOTDIR':
    case 'EEXIST':
      return problem(`a part of ${folder} is a file and no folder`, 'name another path');
    case 'EISDIR':
      return problem(`${path} is a folder`, 'name a file in it');
    case 'EROFS':
      return problem(`${folder} can only be read`, 'mount a volume there that can be written');
    case 'ENOSPC':
    case 'EDQUOT':
      return problem(`there is no space left for ${path}`, 'make room, or move older files elsewhere');
    default:
      return problem(`${path} cannot be written`, 'see what the operating system says of it');
  }
}

/** @throws FileProblem in place of an error of the file system */
export async function withFile<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toProblem(error, path);
  }
}

/** @throws FileProblem for a link, a file with a second name, or anything but a regular file */
export function assertRegular(path: string, { mode, nlink }: Pick<Stats, 'mode' | 'nlink'>): void {
  const kind = mode & constants.S_IFMT;
  const found =
    kind === constants.S_IFLNK
      ? 'a symbolic link'
      : kind === constants.S_IFDIR
        ? 'a folder'
        : kind !== constants.S_IFREG
          ? 'no regular file'
          : nlink > 1
            ? 'a file with a second name'
            : null;
  if (found !== null) throw new FileProblem(`${path} is ${found}`, 'name a path of its own');
}

const CHUNK_BYTES = 65_536;
/** Bytes: far more than any record has. */
const LONGEST_LINE = 64 * 1_048_576;

const OPENING = '{'.charCodeAt(0);

/** What stands before the first line end, and whether there is one; the first bytes of what cannot be a record. */
async function firstLine(handle: FileHandle): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  let head = Buffer.alloc(0);
  for (;;) {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, head.length);
    head = Buffer.concat([head, buffer.subarray(0, bytesRead)]);
    const end = head.indexOf(0x0a, head.length - bytesRead);
    if (end >= 0 || bytesRead === 0 || head[0] !== OPENING || head.length > LONGEST_LINE)
      return { text: head.toString('utf8', 0, end < 0 ? head.length : end), isWhole: end >= 0 };
  }
}

/** @throws FileProblem for a file of something else: it would be appended to, and its last line may be cut off */
export async function assertRecords(path: string, handle: FileHandle): Promise<void> {
  const { text, isWhole } = await firstLine(handle);
  const isRecord = isWhole ? readLine(text) !== null : text === '' || text.startsWith('{"');
  if (!isRecord)
    throw new FileProblem(`${path} holds something else than audit records`, 'name a path of its own');
}

/** The folder of the file, or the nearest one above it that is there. */
async function findFolder(path: string): Promise<string> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const found = await stat(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' && dirname(folder) !== folder) return null;
      throw error;
    });
    if (!found) continue;
    if (!found.isDirectory()) throw Object.assign(new Error(), { code: 'ENOTDIR' });
    return folder;
  }
}

/**
 * Whether a file can be written, created with its folder and rotated. Writes nothing.
 * @returns bytes that are free on its disk @throws FileProblem
 */
export function examineFile(path: string): Promise<number> {
  return withFile(path, async () => {
    const folder = await findFolder(path);
    await access(folder, constants.W_OK | constants.X_OK);
    const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    if (found) {
      assertRegular(path, found);
      await access(path, constants.R_OK | constants.W_OK);
      const handle = await open(path);
      try {
        await assertRecords(path, handle);
      } finally {
        await handle.close();
      }
    }
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  });
}
