import { constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';

/** A path at which something else lies than a file of our own. */
class UnsafeFile extends Error {
  override readonly name = 'UnsafeFile';
}

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants;

/**
 * A file that only this user reads and writes, opened to be appended to; made when it is not there.
 * @throws UnsafeFile for a link of either kind, or what is no regular file
 */
export async function openGuarded(path: string): Promise<FileHandle> {
  const handle = await open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ELOOP') throw new UnsafeFile('a symbolic link');
    throw error;
  });
  try {
    const { nlink, mode } = await handle.stat();
    if ((mode & constants.S_IFMT) !== constants.S_IFREG) throw new UnsafeFile('no regular file');
    if (nlink > 1) throw new UnsafeFile('a file with a second name');
    if ((mode & 0o077) !== 0) await handle.chmod(0o600);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Whether the path still leads to the file that was opened. */
export async function isStillAt(path: string, handle: FileHandle): Promise<boolean> {
  const [there, held] = await Promise.all([lstat(path).catch(() => null), handle.stat()]);
  return there !== null && there.ino === held.ino && there.dev === held.dev;
}

/** Writes all of it, or, as far as nobody else appended meanwhile, nothing. */
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

const CHUNK = 65_536;

/** The last whole line, and how many bytes of a broken one stand behind it. */
export async function lastLine(handle: FileHandle): Promise<{ line: string | null; torn: number }> {
  const { size } = await handle.stat();
  let tail = Buffer.alloc(0);
  for (let start = size; start > 0;) {
    const length = Math.min(CHUNK, start);
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
