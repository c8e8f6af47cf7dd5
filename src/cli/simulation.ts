import type { Agent } from '#core';
import type { Environment } from '#config';
import type { SchemaCatalogue } from '#data';
import type { MongoConnection } from '#data-mongo';
import {
  catalogueOf,
  directoryOf,
  type LoadedWithPlugins,
  openDatabase,
  openSimulation,
  parseConnectionOf,
  type RehearsalRoom,
  SimulatedDirectory,
  toolsOfPlugins,
} from '#instance';
import { readEnvironmentGates } from '#policy';
import { ServiceLogger } from '../logging/service-logger.js';
import { UsageError } from './command-options.js';

export interface SimulationOptions {
  /** What takes the place of the database's own catalogue. */
  readonly schemas?: (read: SchemaCatalogue) => SchemaCatalogue;
  /** Id of the user whose session an agent reads with that reads with its caller's. Default: a user without roles. */
  readonly user?: string;
  /** A connection to the database that is open already. Default: one of its own. */
  readonly connection?: MongoConnection | null;
  /** False leaves the log of the process as it is. Default true: errors alone. */
  readonly quiet?: boolean;
}

/** A room over the database that the configuration names, for the command line and the console. */
export async function openConfiguredSimulation(
  loaded: LoadedWithPlugins,
  env: Environment,
  { connection, quiet = true, schemas, user }: SimulationOptions = {},
): Promise<RehearsalRoom> {
  const database =
    connection === undefined
      ? await openDatabase(loaded.config.database)
      : { connection, close: () => Promise.resolve() };
  try {
    const connections = { mongo: database.connection, parse: parseConnectionOf(loaded.config.parse) };
    const read = catalogueOf(connections);
    const room = await openSimulation(loaded, {
      gates: readEnvironmentGates(env),
      schemas: schemas?.(read) ?? read,
      directory: new SimulatedDirectory(directoryOf(connections)),
      tools: toolsOfPlugins(loaded.plugins),
      ...(user !== undefined && { user }),
      ...(quiet && { logger: new ServiceLogger({ logLevels: ['error', 'fatal'] }) }),
    });
    return {
      ...room,
      close: async () => {
        await room.close();
        await database.close();
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** @throws UsageError listing the agents there are */
export function agentNamed(name: string, { agents }: Pick<RehearsalRoom, 'agents'>): Agent {
  const agent = agents.get(name);
  if (!agent)
    throw new UsageError(`no agent named '${name}'; the configuration has: ${[...agents.keys()].join(', ')}`);
  return agent;
}
