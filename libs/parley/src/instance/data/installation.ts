import { type Environment, type ParleyConfig } from '#config';
import type { MongoConnection } from '#data-mongo';

/** Names the embedded database that one process opened for the others of its service: its port changes with every start. */
export const EMBEDDED_URI = 'PARLEY_EMBEDDED_URI';

/**
 * Where the data of an installation is: the servers of its database with its name, and its Parse Server. Replicas have a place in
 * common. Embedded databases of one name are alike, and so are databases that two machines call `localhost`.
 */
export function installationOf(
  { database, parse }: ParleyConfig,
  environment: Environment,
  connection: MongoConnection | null,
): readonly string[] {
  const { uri, name } = database;
  if (uri === 'embedded' || (uri !== null && uri === environment[EMBEDDED_URI])) return [`embedded ${name}`];
  return [
    ...(connection?.servers ?? []).map((server) => `mongodb ${server} ${connection?.name}`),
    ...(parse.serverUrl === null ? [] : [`parse ${parse.serverUrl} ${parse.appId}`]),
  ];
}
