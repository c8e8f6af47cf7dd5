import { readFileSync } from 'node:fs';
import { loadSeed, MongoConnection, parseSeed, type Seed, SeedError } from '#data-mongo';
import { EmbeddedMongo } from '#embedded-mongo';
import { type DatabaseConfig, ConfigError } from '#config';

export interface OpenDatabase {
  /** Null: none is configured. */
  readonly connection: MongoConnection | null;
  readonly kind: 'embedded' | 'mongodb' | 'none';
  close(): Promise<void>;
}

/** @throws ConfigError listing every fault of the seed file */
export function readSeedFile(path: string): Seed {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    throw new ConfigError(path, [{ path: '', message: `the seed file ${path} cannot be read` }]);
  }
  try {
    return parseSeed(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError)
      throw new ConfigError(path, [{ path: '', message: 'the seed file is not JSON' }]);
    if (error instanceof SeedError) {
      throw new ConfigError(
        path,
        error.faults.map((fault) => ({ path: 'seed', message: fault })),
      );
    }
    throw error;
  }
}

/**
 * Starts the embedded database and seeds it, or connects to a real one. A real database that is down does not stop the
 * start: calls are answered with an error and `/ready` says so until it is back.
 */
export async function openDatabase({ uri, name, seed }: DatabaseConfig): Promise<OpenDatabase> {
  if (uri === null) return { connection: null, kind: 'none', close: () => Promise.resolve() };
  if (uri !== 'embedded') {
    const connection = new MongoConnection({ uri, database: name });
    return { connection, kind: 'mongodb', close: () => connection.close() };
  }
  const parsed = seed === null ? null : readSeedFile(seed);
  const server = await EmbeddedMongo.start({});
  const connection = new MongoConnection({ uri: server.uri, database: name });
  const close = async () => {
    await connection.close();
    await server.close();
  };
  try {
    if (parsed) await loadSeed(connection, parsed, { onlyIfEmpty: false });
  } catch (error) {
    // Left open, it would keep the process alive.
    await close();
    throw error;
  }
  return { connection, kind: 'embedded', close };
}
