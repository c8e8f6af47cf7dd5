import { Inject, Injectable, Logger, Module, type Provider, type Type } from '@nestjs/common';
import { provideFromInstance } from '#core';
import {
  CachedPrincipalDirectory,
  type CatalogueOptions,
  DatabaseTurns,
  InvalidatingWriter,
  PrincipalDirectory,
  RecordReader,
  RecordSearcher,
  RecordWriter,
  SchemaCatalogue,
  SchemaWriter,
  StoresModule,
  UserSessions,
  WrittenClasses,
} from '#data';
import {
  ExtendedJsonPipelines,
  MongoChangeFeed,
  MongoConnection,
  MongoPrincipalDirectory,
  MongoRecordReader,
  MongoRecordSearcher,
  MongoRecordWriter,
  MongoSchemaCatalogue,
  MongoSchemaWriter,
  MongoUserSessions,
  type StorageDeclarations,
} from '#data-mongo';
import {
  LiveQuerySource,
  MASTER_KEY,
  ParseConnection,
  ParsePrincipalDirectory,
  ParseRecordReader,
  ParseRecordWriter,
  ParseSchemaCatalogue,
  ParseSchemaWriter,
  type ParseCredentials,
  RoutedRecordReader,
  RoutedRecordSearcher,
  RoutedRecordWriter,
  CachedSessionWatch,
} from '#data-parse';
import { ConfigVersions, type DatabaseConfig, type LiveQueryConfig, type ParseConfig } from '#config';
import type { Policy, ReadHooks } from '#policy';
import { ChangeSources, FeedSource } from '#subscriptions';
import { ConfigurationModule } from '../configuration.module.js';
import { followDeclarations, storageDeclarationsOf } from './storage-declarations.js';

/** Sessions of other users exist only in the database: without it impersonation is not possible. */
class NoUserSessions extends UserSessions {
  newest(): Promise<null> {
    return Promise.resolve(null);
  }

  mint(): Promise<null> {
    return Promise.resolve(null);
  }
}

/** The connections of a deployment; at least one. */
export interface Connections {
  readonly mongo: MongoConnection | null;
  readonly parse: ParseConnection | null;
}

export function parseConnectionOf({
  serverUrl,
  appId,
  masterKey,
  restApiKey,
}: ParseConfig): ParseConnection | null {
  return serverUrl === null || appId === null
    ? null
    : new ParseConnection({ serverUrl, appId, masterKey, restApiKey });
}

/**
 * Classes and their permissions, from the available source.
 * @param policy the current one, whose classes may be of plain collections
 */
export function catalogueOf({ mongo, parse }: Connections, policy: () => Policy): SchemaCatalogue {
  const options: CatalogueOptions & { readonly declared: () => StorageDeclarations } = {
    declared: () => storageDeclarationsOf(policy()),
  };
  if (mongo) return new MongoSchemaCatalogue(mongo, options);
  return new ParseSchemaCatalogue(existing(parse));
}

/** Sessions and roles, from Parse Server where there is one. */
export function directoryOf({ mongo, parse }: Connections): PrincipalDirectory {
  if (!parse) return new MongoPrincipalDirectory(existing(mongo));
  const roles = parse.hasMasterKey || !mongo ? undefined : new MongoPrincipalDirectory(mongo);
  return new ParsePrincipalDirectory(parse, { ...(roles && { roles }) });
}

/**
 * How principals share the database. The embedded one has a single thread: more concurrent operations would not finish
 * sooner, and those of one principal would block all others.
 */
export function databaseTurnsOf({ uri }: Pick<DatabaseConfig, 'uri'>): DatabaseTurns {
  return new DatabaseTurns(uri === 'embedded' ? EMBEDDED_TURNS : {});
}

const EMBEDDED_TURNS = { atOnce: 8, perPrincipal: 3 };

/** Whether Cloud Code may decide what users read of classes that do not say it (`parse.readHooks`). */
export const CLASSES_READ_HOOKS = Symbol('parse.readHooks');

const CATALOGUE = Symbol('catalogue of the adapters');

/** The connections of the instance; each is null where there is none. */
@Module({
  providers: [provideFromInstance(MongoConnection), provideFromInstance(ParseConnection)],
  exports: [MongoConnection, ParseConnection],
})
export class ConnectionsModule {}

/** The catalogue of classes, and what is written through this replica. */
const CATALOGUE_PROVIDER: Provider = {
  provide: CATALOGUE,
  useFactory: (
    mongo: MongoConnection | null,
    parse: ParseConnection | null,
    written: WrittenClasses,
    versions: ConfigVersions,
  ) => {
    const catalogue = catalogueOf({ mongo, parse }, () => versions.current.policy);
    followDeclarations(versions, catalogue);
    return written.watchingSchemas(catalogue);
  },
  inject: [MongoConnection, ParseConnection, WrittenClasses, ConfigVersions],
};

/**
 * LiveQuery where it is configured, else change streams where there is a database. A server that does not answer yet is
 * probed again later.
 */
export async function openChangeSources(
  mongo: MongoConnection | null,
  { url, appId, restApiKey, masterKey }: LiveQueryConfig,
  catalogue: SchemaCatalogue,
): Promise<ChangeSources> {
  const log = new Logger('Subscriptions');
  // It connects with the first subscription.
  const live =
    url === null || appId === null
      ? null
      : new LiveQuerySource({ url, applicationId: appId, restApiKey, masterKey }, log);
  const feed = mongo && new MongoChangeFeed(mongo, catalogue);
  await feed?.probe();
  return {
    preferred: [...(live ? [live] : []), ...(feed ? [new FeedSource(feed)] : [])],
    close: () => live?.close(),
  };
}

@Injectable()
class DatabaseWriter extends InvalidatingWriter {
  constructor(
    connection: MongoConnection,
    catalogue: SchemaCatalogue,
    directory: CachedPrincipalDirectory,
    written: WrittenClasses,
  ) {
    super(new MongoRecordWriter(connection, catalogue), written.watchingRows(directory));
  }
}

@Injectable()
class DatabaseDirectory extends CachedPrincipalDirectory {
  constructor(connection: MongoConnection) {
    super(new MongoPrincipalDirectory(connection));
  }
}

const ADAPTER_IMPORTS = [ConnectionsModule, ConfigurationModule, StoresModule];

/** The ports to data, by the official driver alone. */
@Module({
  imports: ADAPTER_IMPORTS,
  providers: [
    CATALOGUE_PROVIDER,
    DatabaseDirectory,
    MongoRecordReader,
    MongoRecordSearcher,
    DatabaseWriter,
    MongoSchemaWriter,
  ],
  exports: [
    CATALOGUE,
    DatabaseDirectory,
    MongoRecordReader,
    MongoRecordSearcher,
    DatabaseWriter,
    MongoSchemaWriter,
  ],
})
class DatabaseModule {}

/** Reads from the database where there is one, else through Parse Server with the rights of the caller. */
@Injectable()
class ReaderByRoute extends RoutedRecordReader {
  constructor(
    @Inject(MongoConnection) mongo: MongoConnection | null,
    parse: ParseConnection,
    catalogue: SchemaCatalogue,
    sessions: CachedSessionWatch,
    @Inject(CLASSES_READ_HOOKS) readHooks: ReadHooks,
  ) {
    const pipelines = new ExtendedJsonPipelines(catalogue);
    const rest = (credentials: ParseCredentials) =>
      new ParseRecordReader({ connection: parse, credentials, catalogue, pipelines });
    const direct = mongo && new MongoRecordReader(mongo, catalogue);
    const restMaster = parse.hasMasterKey ? rest(MASTER_KEY) : null;
    super({ direct, restMaster, rest, sessions, readHooks });
  }
}

@Injectable()
class SearcherByRoute extends RoutedRecordSearcher {
  constructor(
    @Inject(MongoConnection) mongo: MongoConnection | null,
    catalogue: SchemaCatalogue,
    sessions: CachedSessionWatch,
    @Inject(CLASSES_READ_HOOKS) readHooks: ReadHooks,
  ) {
    super({ direct: mongo && new MongoRecordSearcher(mongo, catalogue), sessions, readHooks });
  }
}

@Injectable()
class ParseServerWriter extends InvalidatingWriter {
  constructor(
    connection: ParseConnection,
    catalogue: SchemaCatalogue,
    conditions: RecordReader,
    sessions: CachedSessionWatch,
    directory: CachedPrincipalDirectory,
    written: WrittenClasses,
  ) {
    const rest = (credentials: ParseCredentials) =>
      new ParseRecordWriter({ connection, credentials, catalogue, conditions });
    super(new RoutedRecordWriter({ rest, sessions }), written.watchingRows(directory));
  }
}

@Injectable()
class ServerDirectory extends CachedPrincipalDirectory {
  constructor(@Inject(MongoConnection) mongo: MongoConnection | null, parse: ParseConnection) {
    super(directoryOf({ mongo, parse }));
  }
}

/** The ports to data, by Parse Server, with the database beside it or without. */
@Module({
  imports: ADAPTER_IMPORTS,
  providers: [
    CATALOGUE_PROVIDER,
    ServerDirectory,
    {
      provide: CachedSessionWatch,
      useFactory: (directory: ServerDirectory) => new CachedSessionWatch(directory),
      inject: [ServerDirectory],
    },
    ReaderByRoute,
    SearcherByRoute,
    ParseServerWriter,
    ParseSchemaWriter,
  ],
  exports: [CATALOGUE, ServerDirectory, ReaderByRoute, SearcherByRoute, ParseServerWriter, ParseSchemaWriter],
})
class ParseServerModule {}

/** The module of the adapters, and its providers by port. The only place that decides between them. */
export function chooseAdapters({ parse }: Pick<Connections, 'parse'>): {
  readonly module: Type;
  readonly providers: readonly Provider[];
} {
  const catalogue = { provide: SchemaCatalogue, useExisting: CATALOGUE };
  return parse
    ? {
        module: ParseServerModule,
        providers: [
          catalogue,
          { provide: CachedPrincipalDirectory, useExisting: ServerDirectory },
          { provide: RecordReader, useExisting: ReaderByRoute },
          { provide: RecordSearcher, useExisting: SearcherByRoute },
          { provide: RecordWriter, useExisting: ParseServerWriter },
          { provide: SchemaWriter, useExisting: ParseSchemaWriter },
        ],
      }
    : {
        module: DatabaseModule,
        providers: [
          catalogue,
          { provide: CachedPrincipalDirectory, useExisting: DatabaseDirectory },
          { provide: RecordReader, useExisting: MongoRecordReader },
          { provide: RecordSearcher, useExisting: MongoRecordSearcher },
          { provide: RecordWriter, useExisting: DatabaseWriter },
          { provide: SchemaWriter, useExisting: MongoSchemaWriter },
        ],
      };
}

/** The sessions of other users, which only the database holds. */
export const userSessionsOf = (mongo: MongoConnection | null): UserSessions =>
  mongo ? new MongoUserSessions(mongo) : new NoUserSessions();

/** The configuration check requires one of them, so the other exists where one is missing. */
function existing<T>(connection: T | null): T {
  if (connection === null) throw new Error('neither MongoDB nor Parse Server is configured');
  return connection;
}
