import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedDatabase, type RecordReader, type SchemaCatalogue } from '@parley/server';
import type { SeedSource } from './testing-options.js';

/**
 * A database in the memory of this process, used through the real driver. It listens on a unix socket that only this
 * user can open; on Windows on a free port of 127.0.0.1.
 */
export class TestingDatabase {
  private closing: Promise<void> | undefined;

  private constructor(
    private readonly embedded: EmbeddedDatabase,
    private readonly folder: string | null,
  ) {}

  /**
   * Starts the database.
   * @param seed default: an empty database
   * @throws Error when the file cannot be read, and listing every error of the seed
   */
  static async start(seed?: SeedSource): Promise<TestingDatabase> {
    const content = typeof seed === 'string' ? await readSeed(seed) : seed;
    const folder =
      process.platform === 'win32' ? null : await mkdtemp(join(tmpdir(), `parley-${process.pid}-`));
    try {
      // The driver distinguishes a socket from a host name by its suffix.
      const place = folder === null ? {} : { path: join(folder, 'db.sock') };
      return new TestingDatabase(
        await EmbeddedDatabase.start({ ...(content && { seed: content }), ...place }),
        folder,
      );
    } catch (error) {
      await removeFolder(folder);
      throw error;
    }
  }

  /** For `database.uri` of an application, and for its Mongoose: it names the database. */
  get uri(): string {
    return this.embedded.uri;
  }

  /** The stored rows without any rule. @param catalogue the classes of an application. Default: those of the seed */
  rows(catalogue?: SchemaCatalogue): RecordReader {
    return this.embedded.rows(catalogue);
  }

  /** Restores the rows of the seed and removes all others, those of other databases included. Indexes stay. */
  reset(): Promise<void> {
    return this.embedded.reset();
  }

  /** May be called more than once. */
  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  /** As `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  private async end(): Promise<void> {
    try {
      await this.embedded.close();
    } finally {
      await removeFolder(this.folder);
    }
  }
}

async function removeFolder(folder: string | null): Promise<void> {
  if (folder !== null) await rm(folder, { recursive: true, force: true });
}

async function readSeed(path: string): Promise<object> {
  const text = await readFile(path, 'utf8');
  let content: unknown;
  try {
    // A byte order mark is no part of it.
    content = JSON.parse(text.replace(/^\u{feff}/u, ''));
  } catch {
    throw new TypeError(`seed: ${path} is not JSON`);
  }
  if (content === null || typeof content !== 'object')
    throw new TypeError(`seed: ${path} is not the content of a seed`);
  return content;
}
