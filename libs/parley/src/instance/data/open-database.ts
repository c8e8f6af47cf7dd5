import { readFileSync } from 'node:fs';
import {
  ConfigError,
  describeUnreadable,
  type ConfigIssue,
  type FurtherDatabaseConfig,
  type ParleyConfig,
  readTenantDatabases,
} from '#config';
import { readJson } from '#core';
import type { RecordReader, SchemaCatalogue } from '#data';
import {
  assertConnectionString,
  ConnectionStringError,
  DatabaseSnapshot,
  type FurtherConnections,
  loadSeed,
  MongoConnection,
  type MongoConnectionOptions,
  MongoRecordReader,
  MongoSchemaCatalogue,
  parseSeed,
  type Seed,
  SeedError,
} from '#data-mongo';
import { assertOptions } from '#policy';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { readBuiltSeed } from '../../package-files.js';

export interface OpenDatabase {
  /** Null: none is configured. */
  readonly connection: MongoConnection | null;
  readonly kind: 'embedded' | 'mongodb' | 'none';
  /** Where other processes reach it; null: none is configured, or the application opened it. */
  readonly uri: string | null;
  close(): Promise<void>;
}

/** @throws ConfigError listing every error of the seed file */
export function readSeedFile(path: string): Seed {
  return seedOf(contentOf(path), path);
}

function contentOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'no such file' : describeUnreadable(error);
    throw new ConfigError(path, [{ path: '', at: path, message: why }]);
  }
}

function seedOf(content: Buffer, path: string): Seed {
  const reading = readJson(content.toString('utf8'));
  if (!reading.ok) throw new ConfigError(path, [{ path: '', at: path, message: reading.why }]);
  try {
    return parseSeed(reading.value);
  } catch (error) {
    if (error instanceof SeedError) {
      throw new ConfigError(
        path,
        error.faults.map((message) => ({ path: 'seed', at: path, message })),
      );
    }
    throw error;
  }
}

/**
 * @param path of the option with the connection string
 * @throws ConfigError for one that the driver refuses
 */
export function connectTo(
  options: MongoConnectionOptions,
  path = 'database.uri',
  further?: FurtherConnections,
): MongoConnection {
  try {
    return new MongoConnection(options, further);
  } catch (error) {
    if (!(error instanceof ConnectionStringError)) throw error;
    throw new ConfigError('the configuration', [{ path, message: error.message }]);
  }
}

/** The addresses of audit sinks that the driver refuses. */
export function findSinkFaults({ audit }: Pick<ParleyConfig, 'audit'>): ConfigIssue[] {
  return audit.sinks.flatMap((sink, index): ConfigIssue[] => {
    if (sink.kind !== 'mongodb' || sink.uri === null) return [];
    try {
      assertConnectionString(sink.uri);
      return [];
    } catch (error) {
      if (!(error instanceof ConnectionStringError)) throw error;
      return [{ path: `audit.sinks.${index}.uri`, message: error.message }];
    }
  });
}

/** Connects to a database beside the first one. @throws ConfigError as `connectTo` */
export function connectFurther(label: string, config: DatabasesConfig): MongoConnection {
  const { uri, name, fastReads, readOnly } = config.furtherDatabases[label] as FurtherDatabaseConfig;
  const tenants = readTenantDatabases(name, config);
  return connectTo(
    { uri: uri as string, database: name, fastReads, readOnly, tenants },
    `databases.${label}.uri`,
  );
}

const connectAllFurther = (config: DatabasesConfig): FurtherConnections =>
  new Map(Object.keys(config.furtherDatabases).map((label) => [label, connectFurther(label, config)]));

export type DatabasesConfig = Pick<ParleyConfig, 'database' | 'furtherDatabases'> &
  Partial<Pick<ParleyConfig, 'audit'>>;

/**
 * Starts the embedded database and seeds it, or connects to a real one. A real database that is down does not stop the
 * start: calls return an error and `/ready` reports it until the database is back.
 */
export async function openDatabase(config: DatabasesConfig): Promise<OpenDatabase> {
  const { uri, name, seed, fastReads, readOnly } = config.database;
  if (uri === null) return { connection: null, kind: 'none', uri: null, close: () => Promise.resolve() };
  if (uri !== 'embedded') {
    const connection = connectTo(
      { uri, database: name, fastReads, readOnly },
      'database.uri',
      connectAllFurther(config),
    );
    return { connection, kind: 'mongodb', uri, close: () => connection.close() };
  }
  const content = seed === null ? null : contentOf(seed);
  const initialData = content === null ? undefined : readBuiltSeed(content, name);
  const parsed =
    seed === null || content === null || initialData !== undefined ? null : seedOf(content, seed);
  const server = await EmbeddedMongo.start({ ...(initialData !== undefined && { initialData }) });
  const connection = new MongoConnection(
    { uri: server.uri, database: name, fastReads, readOnly },
    connectAllFurther(config),
  );
  const close = async () => {
    await connection.close();
    await server.close();
  };
  try {
    if (parsed) await loadSeed(connection, parsed, { onlyIfEmpty: false });
  } catch (error) {
    // An open connection would keep the process alive.
    await close();
    throw error;
  }
  return { connection, kind: 'embedded', uri: server.uri, close };
}

/**
 * The databases of a configuration, some of which the application opened. Closing them leaves its connections open.
 * @param opened by the path of their options
 */
export async function openWithConnections(
  config: ParleyConfig,
  opened: ReadonlyMap<string, MongoConnection>,
): Promise<OpenDatabase> {
  const { databaseName, furtherDatabases } = config;
  const first = opened.get(databaseName === null ? 'database' : `databases.${databaseName}`);
  const database: OpenDatabase = first
    ? { connection: first, kind: 'mongodb', uri: null, close: () => first.close() }
    : await openDatabase({ ...config, furtherDatabases: {} });
  for (const label of Object.keys(furtherDatabases)) {
    const given = opened.get(`databases.${label}`);
    const tenants = readTenantDatabases(furtherDatabases[label]?.name ?? '', config);
    database.connection?.replaceFurther(label, given?.withTenants(tenants) ?? connectFurther(label, config));
  }
  return database;
}

/** Options of an embedded database. */
export interface EmbeddedDatabaseOptions {
  /** Content of a seed file. Default: an empty database. */
  readonly seed?: object;
  /** Unix socket to listen on. Default: a free port of 127.0.0.1. */
  readonly path?: string;
  /** Name of the database. Default `parley`. */
  readonly name?: string;
}

/** An embedded database in this thread and in memory that can be reset to its seed. For tests. */
export class EmbeddedDatabase {
  private readonly catalogue: MongoSchemaCatalogue;

  private constructor(
    private readonly server: EmbeddedMongo,
    private readonly connection: MongoConnection,
    private readonly seeded: DatabaseSnapshot,
    /** Of the database. */
    readonly name: string,
  ) {
    this.catalogue = new MongoSchemaCatalogue(connection);
  }

  /** Starts an embedded database. @throws SeedError listing every error of the seed */
  static async start(options: EmbeddedDatabaseOptions = {}): Promise<EmbeddedDatabase> {
    assertOptions('EmbeddedDatabase.start', options, {
      seed: true,
      path: true,
      name: true,
    });
    const { seed, path, name = 'parley' } = options;
    const parsed = seed === undefined ? null : parseSeed(seed);
    const server = await EmbeddedMongo.start({ inProcess: true, ...(path !== undefined && { path }) });
    // The server runs in this process: a slow answer means a busy machine.
    const connection = new MongoConnection({ uri: server.uri, database: name, timeout: 30_000 });
    try {
      if (parsed) await loadSeed(connection, parsed, { onlyIfEmpty: false });
      return new EmbeddedDatabase(server, connection, await DatabaseSnapshot.take(connection), name);
    } catch (error) {
      // An open connection would keep the process alive.
      await connection.close();
      await server.close();
      throw error;
    }
  }

  /** Connection string for `database.uri`, and for other clients: it names the database. */
  get uri(): string {
    const uri = new URL(this.server.uri);
    uri.pathname = `/${this.name}`;
    return uri.href;
  }

  /**
   * The stored rows without any policy, for tests.
   * @param catalogue the classes of an instance. Default: those that Parse stored
   */
  rows(catalogue: SchemaCatalogue = this.catalogue): RecordReader {
    // Other code changes classes without notice.
    catalogue.invalidate();
    return new MongoRecordReader(this.connection, catalogue);
  }

  /** Restores the seed, and empties what other clients wrote, into other databases too. Indexes stay. A running instance keeps its cached data until its caches are cleared. */
  async reset(): Promise<void> {
    await this.seeded.putBack();
  }

  /** Stops it, frees its port or socket and discards its data. */
  async close(): Promise<void> {
    await this.connection.close();
    await this.server.close();
  }
}
