import { StoreError } from '#data';
import { connectionProblem, loadSeed, MongoConnection } from '#data-mongo';
import { loadConfig } from '#config';
import { readSeedFile } from '#parley/instance';
import { countOf } from './text-output.js';

/** The message for a load that the database aborted. */
function explainError(error: unknown): Error {
  if (!(error instanceof StoreError)) return error as Error;
  if (error.code === 'duplicate')
    return new Error('rows of this seed are there already: empty the database, then load it again');
  const problem = connectionProblem(error);
  if (problem)
    return new Error(`the database refuses or does not answer: ${problem.found}; ${problem.remedy}`);
  const { cause } = error;
  return cause instanceof Error ? cause : error;
}

/** Loads a seed into an empty database; a database with data stays unchanged. */
export async function runSeed(file: string): Promise<void> {
  const { database } = loadConfig().config;
  if (database.uri === null) throw new Error('no database is configured: set MONGODB_URI or database.uri');
  if (database.uri === 'embedded')
    throw new Error('the embedded database is seeded at start: set MONGODB_URI or database.uri');
  const connection = new MongoConnection({ uri: database.uri, database: database.name });
  try {
    const { loaded, rows } = await loadSeed(connection, readSeedFile(file), { onlyIfEmpty: true });
    if (!loaded) throw new Error('the database is not empty: nothing was changed');
    process.stderr.write(`Seed loaded: ${countOf(rows, 'row')}\n`);
  } catch (error) {
    throw explainError(error);
  } finally {
    await connection.close();
  }
}
