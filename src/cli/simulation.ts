import type { Environment } from '#config';
import type { SchemaCatalogue } from '#data';
import { MongoRecordSearcher } from '#data-mongo';
import {
  catalogueOf,
  createDirectory,
  type LoadedWithPlugins,
  openDatabase,
  openSimulation,
  createParseConnection,
  type SimulatedInstance,
  SimulatedDirectory,
  toolsOfPlugins,
} from '#parley/instance';
import { readEnvironmentGates } from '#policy';
import { ServiceLogger } from '../logging/service-logger.js';

export interface SimulationOptions {
  /** Replaces the database's own catalogue. */
  readonly schemas?: (read: SchemaCatalogue) => SchemaCatalogue;
  /**
   * User id of the simulated session, for an agent that reads with its caller's session. Default: a user without roles.
   */
  readonly user?: string;
}

/** A simulation over the configured database, for the command line. */
export async function openConfiguredSimulation(
  loaded: LoadedWithPlugins,
  env: Environment,
  { schemas, user }: SimulationOptions = {},
): Promise<SimulatedInstance> {
  const database = await openDatabase(loaded.config);
  try {
    const connections = { mongo: database.connection, parse: createParseConnection(loaded.config.parse) };
    const read = catalogueOf(connections, () => loaded.policy);
    const simulation = await openSimulation(loaded, {
      gates: readEnvironmentGates(env),
      schemas: schemas?.(read) ?? read,
      directory: new SimulatedDirectory(createDirectory(connections)),
      // Without a connection the service cannot search either.
      searcher: database.connection
        ? new MongoRecordSearcher(database.connection, read)
        : { canSearch: () => false },
      tools: toolsOfPlugins(loaded.plugins),
      ...(user !== undefined && { user }),
      logger: new ServiceLogger({ logLevels: ['error', 'fatal'] }),
    });
    return {
      ...simulation,
      close: async () => {
        await simulation.close();
        await database.close();
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}
