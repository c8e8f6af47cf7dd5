import {
  type DynamicModule,
  Inject,
  Injectable,
  Logger,
  Module,
  type ModuleMetadata,
  type Provider,
} from '@nestjs/common';
import {
  CachedPrincipalDirectory,
  type CatalogueOptions,
  DatabaseTurns,
  InvalidatingWriter,
  Impersonation,
  PrincipalDirectory,
  RecordReader,
  RecordSearcher,
  RecordWriter,
  SchemaCatalogue,
  SchemaWriter,
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

interface StoreSettings {
  readonly liveQuery: LiveQueryConfig;
  readonly readHooks: ReadHooks;
}

/** Whether Cloud Code may decide what users read of classes that do not say it (`parse.readHooks`). */
const CLASSES_READ_HOOKS = Symbol('parse.readHooks');

/** Binds the data ports: MongoDB alone, or Parse Server with or without it. The only place that decides. */
@Module({})
export class StoresModule {
  /** @param imports provide the shared state and the versions of the configuration */
  static register(
    { mongo, parse, liveQuery, readHooks }: Connections & StoreSettings,
    imports: ModuleMetadata['imports'],
  ): DynamicModule {
    const providers: Provider[] = [
      { provide: MongoConnection, useValue: mongo },
      { provide: ParseConnection, useValue: parse },
      { provide: CLASSES_READ_HOOKS, useValue: readHooks },
      WrittenClasses,
      {
        provide: SchemaCatalogue,
        useFactory: (written: WrittenClasses, versions: ConfigVersions) => {
          const catalogue = catalogueOf({ mongo, parse }, () => versions.current.policy);
          followDeclarations(versions, catalogue);
          return written.watchingSchemas(catalogue);
        },
        inject: [WrittenClasses, ConfigVersions],
      },
      { provide: PrincipalDirectory, useExisting: CachedPrincipalDirectory },
      {
        provide: Impersonation,
        useValue: new Impersonation(mongo ? new MongoUserSessions(mongo) : new NoUserSessions()),
      },
      {
        provide: ChangeSources,
        useFactory: (catalogue: SchemaCatalogue) => changeSources(mongo, liveQuery, catalogue),
        inject: [SchemaCatalogue],
      },
      ...(parse ? withParseServer({ mongo, parse }) : withDatabaseAlone(existing(mongo))),
    ];
    return {
      module: StoresModule,
      imports: [...(imports ?? [])],
      providers,
      exports: [
        MongoConnection,
        ParseConnection,
        SchemaCatalogue,
        CachedPrincipalDirectory,
        PrincipalDirectory,
        Impersonation,
        ChangeSources,
        RecordReader,
        RecordSearcher,
        RecordWriter,
        SchemaWriter,
      ],
    };
  }
}

/**
 * LiveQuery where it is configured, else change streams where there is a database. A server that does not answer yet is
 * probed again later.
 */
async function changeSources(
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

function withDatabaseAlone(mongo: MongoConnection): Provider[] {
  const directory = new CachedPrincipalDirectory(new MongoPrincipalDirectory(mongo));
  return [
    { provide: CachedPrincipalDirectory, useValue: directory },
    { provide: RecordReader, useClass: MongoRecordReader },
    { provide: RecordSearcher, useClass: MongoRecordSearcher },
    { provide: RecordWriter, useClass: DatabaseWriter },
    { provide: SchemaWriter, useClass: MongoSchemaWriter },
  ];
}

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

function withParseServer(connections: Connections): Provider[] {
  const directory = new CachedPrincipalDirectory(directoryOf(connections));
  return [
    { provide: CachedPrincipalDirectory, useValue: directory },
    { provide: CachedSessionWatch, useValue: new CachedSessionWatch(directory) },
    { provide: RecordReader, useClass: ReaderByRoute },
    { provide: RecordSearcher, useClass: SearcherByRoute },
    { provide: RecordWriter, useClass: ParseServerWriter },
    { provide: SchemaWriter, useClass: ParseSchemaWriter },
  ];
}

/** The configuration check requires one of them, so the other exists where one is missing. */
function existing<T>(connection: T | null): T {
  if (connection === null) throw new Error('neither MongoDB nor Parse Server is configured');
  return connection;
}
