import { MongoConnection } from '#data-mongo';
import type { ClassName } from './vocabulary.js';
import { TENANT_COLUMN } from './vocabulary.js';
import { type Place, tenantsOf, type World } from './world.js';

/** Where a database of a world is. */
export interface WorldPlace {
  readonly uri: string;
  readonly name: string;
  /** Its rows are read on connections beside the driver. Default: through the driver. */
  readonly fastReads?: boolean;
}

/** Stands in requests for the name of the first database of the world. */
export const ITS_NAME = 'nameofthedatabase';

/** Of rows that belong to no tenant: the database of another tenant, whom nobody is. */
const NOBODY = 'nobody';

/** The names of the databases of a world by what classes call them; `first` is not named there. */
const nameAt: Readonly<Record<Place, (name: string) => string>> = {
  first: (name) => name,
  second: (name) => `${name}_second`,
  apart: (name) => `${name}_of_{tenant}`,
};

const nameFor = (name: string, tenant: string): string => nameAt.apart(name).replace('{tenant}', tenant);

/** The databases of a configuration, and nothing of it where there is one. */
export function databasesConfig({ spread, storage }: World, { uri, name }: WorldPlace): object {
  const form = storage && { storage };
  if (!spread) return { database: { uri: 'embedded', name: 'parley', ...form } };
  return {
    databases: {
      first: { uri: 'embedded', name: 'parley', ...form },
      second: { uri, name: nameAt.second(name), ...form },
      apart: { uri, name: nameAt.apart(name), ...form },
    },
  };
}

/** Connects to all databases of a world. */
export function openConnection(
  { spread }: World,
  { uri, name, fastReads = false }: WorldPlace,
): MongoConnection {
  const options = { uri, timeout: 60_000, fastReads };
  const further = new Map(
    spread
      ? [
          ['second', new MongoConnection({ ...options, database: nameAt.second(name) })],
          ['apart', new MongoConnection({ ...options, tenants: { pattern: nameAt.apart(name), taken: [] } })],
        ]
      : [],
  );
  return new MongoConnection({ ...options, database: name }, further);
}

/** One database, with the classes and rows of a seed that are in it. */
interface Stored<Row> {
  readonly name: string;
  readonly classes: readonly ClassName[];
  readonly has: (className: ClassName, row: Row) => boolean;
}

/** The databases of a world. */
export function listStored<Row extends Readonly<Record<string, unknown>>>(
  world: World,
  classNames: readonly ClassName[],
  name: string,
): readonly Stored<Row>[] {
  const { spread } = world;
  if (!spread) return [{ name, classes: classNames, has: () => true }];
  const at = (place: Place) => classNames.filter((className) => spread[className] === place);
  return [
    ...(['first', 'second'] as const).map((place) => ({
      name: nameAt[place](name),
      classes: at(place),
      has: () => true,
    })),
    ...[...tenantsOf(world), NOBODY].map((tenant) => ({
      name: nameFor(name, tenant),
      classes: at('apart'),
      has: (className: ClassName, row: Row) => (row[TENANT_COLUMN[className]] ?? NOBODY) === tenant,
    })),
  ];
}
