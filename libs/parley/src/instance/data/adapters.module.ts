import { Logger, Module, type Provider } from '@nestjs/common';
import { concatMap, share, tap } from 'rxjs';
import { provideFromInstance } from '#core';
import {
  CachedPrincipalDirectory,
  type CatalogueOptions,
  ChangeSets,
  DatabaseTurns,
  forgettingWrites,
  MemoryChangeSets,
  NoRowTransactions,
  PrincipalDirectory,
  ReadStore,
  RecordedWrites,
  type RenewedCatalogue,
  RowTransactions,
  SchemaCatalogue,
  SchemaWriter,
  SearchStore,
  StoresModule,
  UserSessions,
  WriteRecorder,
  WriteStore,
  WrittenClasses,
} from '#data';
import {
  ExtendedJsonPipelines,
  MongoChangeFeed,
  MongoChangeSets,
  MongoConnection,
  MongoPrincipalDirectory,
  MongoRecordReader,
  MongoRecordSearcher,
  MongoRecordWriter,
  MongoRowTransactions,
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
  CachedSessionWatch,
  routedReads,
  routedSearches,
  routedWrites,
} from '#data-parse';
import { CHANGE_SETTINGS, type ChangeSettings } from '#changes';
import { ConfigVersions, type DatabaseConfig, type LiveQueryConfig, type ParseConfig } from '#config';
import type { Policy, ReadHooks } from '#policy';
import { SharedState } from '#state';
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

export function createParseConnection({
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
export function catalogueOf({ mongo, parse }: Connections, policy: () => Policy): RenewedCatalogue {
  const options: CatalogueOptions & { readonly declared: () => StorageDeclarations } = {
    declared: () => storageDeclarationsOf(policy()),
  };
  if (mongo) return new MongoSchemaCatalogue(mongo, options);
  return new ParseSchemaCatalogue(requireConnection(parse));
}

/** Sessions and roles, from Parse Server where there is one. */
export function createDirectory({ mongo, parse }: Connections): PrincipalDirectory {
  if (!parse) return new MongoPrincipalDirectory(requireConnection(mongo));
  const roles = parse.hasMasterKey || !mongo ? undefined : new MongoPrincipalDirectory(mongo);
  return new ParsePrincipalDirectory(parse, { ...(roles && { roles }) });
}

/**
 * How principals share the database. The embedded one has a single thread: more concurrent operations would not finish
 * sooner, and those of one principal would block all others.
 */
export function createDatabaseTurns({ uri }: Pick<DatabaseConfig, 'uri'>): DatabaseTurns {
  return new DatabaseTurns(uri === 'embedded' ? EMBEDDED_TURNS : {});
}

const EMBEDDED_TURNS = { atOnce: 8, perPrincipal: 3 };

/** Whether Cloud Code may decide what users read of classes that do not say it (`parse.readHooks`). */
export const CLASSES_READ_HOOKS = Symbol('parse.readHooks');

/** The connections of the instance; each is null where there is none. */
@Module({
  providers: [provideFromInstance(MongoConnection), provideFromInstance(ParseConnection)],
  exports: [MongoConnection, ParseConnection],
})
export class ConnectionsModule {}

/** What tells that a session has ended, for routes that pass one to Parse Server. */
@Module({
  imports: [StoresModule],
  providers: [
    {
      provide: CachedSessionWatch,
      useFactory: (directory: CachedPrincipalDirectory) => new CachedSessionWatch(directory),
      inject: [CachedPrincipalDirectory],
    },
  ],
  exports: [CachedSessionWatch],
})
export class SessionWatchModule {}

/**
 * LiveQuery where it is configured, else change streams of the databases. A server that does not answer yet is
 * probed again later.
 */
export async function openChangeSources(
  mongo: MongoConnection | null,
  { url, appId, restApiKey, masterKey }: LiveQueryConfig,
  catalogue: SchemaCatalogue,
  versions: Pick<ConfigVersions, 'current' | 'changes'>,
): Promise<ChangeSources> {
  const log = new Logger('Subscriptions');
  // It connects with the first subscription.
  const live =
    url === null || appId === null
      ? null
      : new LiveQuerySource({ url, applicationId: appId, restApiKey, masterKey }, log);
  const sources = new WeakMap<MongoConnection, FeedSource>();
  let opened = 0;
  let probes: Promise<void>[] = [];
  const findSource = (name: string | null, connection: MongoConnection): FeedSource => {
    const known = sources.get(connection);
    if (known) return known;
    const feed = new MongoChangeFeed(connection, catalogue);
    const isServed = () => name === null || mongo?.further.get(name) === connection;
    const holds = (className: string) =>
      isServed() && (versions.current.policy.classes.get(className)?.database ?? null) === name;
    // A connection that takes the place of another one has channels of its own.
    const label = name === null ? null : `${name}/${opened++}`;
    const source = new FeedSource(feed, holds, label, connection.isPerTenant, moves);
    sources.set(connection, source);
    probes.push(feed.probe());
    return source;
  };
  const listSources = (): FeedSource[] =>
    mongo ? [[null, mongo] as const, ...mongo.further].map(([name, one]) => findSource(name, one)) : [];
  // Watchers of a class that moved find its new source when it is known what that can do.
  const moves = versions.changes.pipe(
    tap(listSources),
    concatMap(() => Promise.all(probes.splice(0))),
    share(),
  );
  listSources();
  const [first] = probes;
  probes = [];
  await first;
  return {
    get preferred() {
      return [...(live ? [live] : []), ...listSources()];
    },
    close: () => live?.close(),
  };
}

/** The catalogue of classes, sessions and roles, and what is written through this replica. */
const SHARED_ADAPTERS: readonly Provider[] = [
  {
    provide: SchemaCatalogue,
    useFactory: (
      mongo: MongoConnection | null,
      parse: ParseConnection | null,
      written: WrittenClasses,
      versions: ConfigVersions,
    ) => {
      const catalogue = catalogueOf({ mongo, parse }, () => versions.current.policy);
      followDeclarations(versions, catalogue);
      written.watchSchemas(catalogue);
      return catalogue;
    },
    inject: [MongoConnection, ParseConnection, WrittenClasses, ConfigVersions],
  },
  {
    provide: CachedPrincipalDirectory,
    useFactory: (mongo: MongoConnection | null, parse: ParseConnection | null) =>
      new CachedPrincipalDirectory(createDirectory({ mongo, parse })),
    inject: [MongoConnection, ParseConnection],
  },
];

/** The ports to data, by the official driver alone. */
const DATABASE_ADAPTERS: readonly Provider[] = [
  { provide: ReadStore, useClass: MongoRecordReader },
  { provide: SearchStore, useClass: MongoRecordSearcher },
  {
    provide: WriteStore,
    useFactory: (
      mongo: MongoConnection,
      catalogue: SchemaCatalogue,
      directory: CachedPrincipalDirectory,
      written: WrittenClasses,
      transactions: RowTransactions,
      recorder: WriteRecorder,
      { record }: ChangeSettings,
    ) => {
      const writes = forgettingWrites(new MongoRecordWriter(mongo, catalogue), written.watchRows(directory));
      return record === 'all' ? new RecordedWrites(writes, transactions, recorder) : writes;
    },
    inject: [
      MongoConnection,
      SchemaCatalogue,
      CachedPrincipalDirectory,
      WrittenClasses,
      RowTransactions,
      WriteRecorder,
      CHANGE_SETTINGS,
    ],
  },
  {
    provide: RowTransactions,
    useFactory: (
      mongo: MongoConnection,
      catalogue: SchemaCatalogue,
      directory: CachedPrincipalDirectory,
      written: WrittenClasses,
    ) =>
      new MongoRowTransactions(mongo, catalogue, (writes) =>
        forgettingWrites(writes, written.watchRows(directory)),
      ),
    inject: [MongoConnection, SchemaCatalogue, CachedPrincipalDirectory, WrittenClasses],
  },
  {
    provide: ChangeSets,
    useFactory: (mongo: MongoConnection, { clock }: SharedState) => new MongoChangeSets(mongo, clock),
    inject: [MongoConnection, SharedState],
  },
  { provide: SchemaWriter, useClass: MongoSchemaWriter },
];

/** Reads from the database where there is one, else through Parse Server with the rights of the caller. */
function readsByRoute(
  mongo: MongoConnection | null,
  parse: ParseConnection,
  catalogue: SchemaCatalogue,
  sessions: CachedSessionWatch,
  readHooks: ReadHooks,
): ReadStore {
  const pipelines = new ExtendedJsonPipelines(catalogue);
  const rest = (credentials: ParseCredentials) =>
    new ParseRecordReader({ connection: parse, credentials, catalogue, pipelines });
  const direct = mongo && new MongoRecordReader(mongo, catalogue);
  const restMaster = parse.hasMasterKey ? rest(MASTER_KEY) : null;
  return routedReads({ direct, restMaster, rest, sessions, readHooks });
}

/** Writes through Parse Server, with the conditions of a write read by the operator's route. */
function writesByRoute(
  connection: ParseConnection,
  catalogue: SchemaCatalogue,
  conditions: ReadStore,
  sessions: CachedSessionWatch,
  directory: CachedPrincipalDirectory,
  written: WrittenClasses,
): WriteStore {
  const rest = (credentials: ParseCredentials) =>
    new ParseRecordWriter({ connection, credentials, catalogue, conditions });
  return forgettingWrites(routedWrites({ rest, sessions }), written.watchRows(directory));
}

/** The ports to data, by Parse Server, with the database beside it or without. */
const PARSE_ADAPTERS: readonly Provider[] = [
  {
    provide: ReadStore,
    useFactory: readsByRoute,
    inject: [MongoConnection, ParseConnection, SchemaCatalogue, CachedSessionWatch, CLASSES_READ_HOOKS],
  },
  {
    provide: SearchStore,
    useFactory: (
      mongo: MongoConnection | null,
      catalogue: SchemaCatalogue,
      sessions: CachedSessionWatch,
      readHooks: ReadHooks,
    ) => routedSearches({ direct: mongo && new MongoRecordSearcher(mongo, catalogue), sessions, readHooks }),
    inject: [MongoConnection, SchemaCatalogue, CachedSessionWatch, CLASSES_READ_HOOKS],
  },
  {
    provide: WriteStore,
    useFactory: writesByRoute,
    inject: [
      ParseConnection,
      SchemaCatalogue,
      ReadStore,
      CachedSessionWatch,
      CachedPrincipalDirectory,
      WrittenClasses,
    ],
  },
  {
    provide: RowTransactions,
    useFactory: () =>
      new NoRowTransactions(
        'writes go through Parse Server, which takes no change sets yet (parse.serverUrl)',
      ),
  },
  {
    provide: ChangeSets,
    useFactory: (mongo: MongoConnection | null, { clock }: SharedState) =>
      mongo ? new MongoChangeSets(mongo, clock) : new MemoryChangeSets(clock),
    inject: [MongoConnection, SharedState],
  },
  { provide: SchemaWriter, useClass: ParseSchemaWriter },
];

/** The adapters of an instance by their ports. The only place that decides between them. */
export const chooseAdapters = ({ parse }: Pick<Connections, 'parse'>): readonly Provider[] => [
  ...SHARED_ADAPTERS,
  ...(parse ? PARSE_ADAPTERS : DATABASE_ADAPTERS),
];

/** The sessions of other users, which only the database holds. */
export const userSessionsOf = (mongo: MongoConnection | null): UserSessions =>
  mongo ? new MongoUserSessions(mongo) : new NoUserSessions();

/** The configuration check requires one of them, so the other exists where one is missing. */
function requireConnection<T>(connection: T | null): T {
  if (connection === null) throw new Error('neither MongoDB nor Parse Server is configured');
  return connection;
}
