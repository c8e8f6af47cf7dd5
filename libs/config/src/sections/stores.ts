import { READ_HOOKS, type ReadHooks, SERVER_DATABASES, type StorageForm } from '#policy';
import { IsBoolean, IsIn, IsString, Matches } from 'class-validator';
import { Nullable } from '#schema';
import { Option, type Plain } from '../schema/option.js';

export const DATABASE_NAME = /^[^/\\. "$*<>:|?\u0000]{1,63}$/;
/** In words, for errors. */
export const IN_DATABASE_NAMES = {
  message: 'the name of a database: 1 to 63 characters, without blanks and / \\ . " $ * < > : | ?',
};
const ANY_URL = /^[a-z]+:\/\//;
/** What can stand in a header. */
const HEADER_VALUE = /^[\x21-\x7e]+$/;

/** The section `database`: the MongoDB that holds the rows. */
export class DatabaseSection {
  @Option(
    '`embedded`, or a `mongodb://` / `mongodb+srv://` URI; with a Parse Server, the database of that server; default there null: no direct access',
  )
  @IsString()
  @Matches(/^(embedded|mongodb(\+srv)?:\/\/.+)$/, {
    message: 'embedded, or a URI with mongodb:// or mongodb+srv://',
  })
  @Nullable()
  readonly uri: string | null = 'embedded';

  @Option(
    'database; default: the one that `uri` names, else `parley`. `tenant_{tenant}` in `databases`: [one for each tenant](databases.md#databases-of-tenants)',
    { default: 'parley' },
  )
  @IsString()
  @Matches(DATABASE_NAME, IN_DATABASE_NAMES)
  readonly name!: string;

  @Option(
    'how classes are stored that do not say so in [policy.classes](policy.md#classes): `parse`, as Parse Server stores them, or `plain`, [collections that Parse did not write](plain-mongodb.md)',
  )
  @IsIn(['parse', 'plain'])
  readonly storage: StorageForm = 'parse';

  @Option('seed file for the embedded database, relative to the configuration file')
  @IsString()
  @Nullable()
  readonly seed: string | null = null;

  @Option(
    'reads use [connections beside those of the driver](performance.md#fast-reads), where the connection string permits it',
  )
  @IsBoolean()
  readonly fastReads: boolean = false;

  @Option('no row and no class of it is ever changed, whatever an agent may do')
  @IsBoolean()
  readonly readOnly: boolean = false;
}

export type DatabaseConfig = Plain<DatabaseSection>;

const DEFAULT_NAME = 'parley';

/** The address of servers, with or without a user, then the database. */
const NAMED_DATABASE = /^mongodb(?:\+srv)?:\/\/[^/?#]+\/([^?#]+)/;

const SERVERS = /^mongodb(\+srv)?:\/\/(?:[^/?#]*@)?([^/?#]+)/;

/**
 * The servers that a connection string names, each as one text, whatever its user and options. Two strings that have one in common lead
 * to the same data. What is no connection string is returned as it is.
 */
export function readServers(uri: string): readonly string[] {
  const [, srv, written] = SERVERS.exec(uri) ?? [];
  if (written === undefined) return [uri];
  if (srv !== undefined) return [`${written.toLowerCase()}${srv}`];
  return written
    .toLowerCase()
    .split(',')
    .map((host) => (/:\d+$/.test(host) ? host : `${host}:27017`));
}

/**
 * The database of a configuration that names none: that of the URI, else ours. A URI names `admin` to say where its user is known.
 */
export function readDatabaseName(uri: string | null): string {
  const written = NAMED_DATABASE.exec(uri ?? '')?.[1];
  if (written === undefined) return DEFAULT_NAME;
  let name: string;
  try {
    name = decodeURIComponent(written);
  } catch {
    return DEFAULT_NAME;
  }
  return DATABASE_NAME.test(name) && !SERVER_DATABASES.has(name) ? name : DEFAULT_NAME;
}
/** `database.uri` where the application hands over a connection of its own. No file can contain it. */
export const OPENED_BY_APPLICATION = 'connection';

/** The section `parse`: the Parse Server that rows are reached through. */
export class ParseSection {
  @Option(
    'where Parse Server is mounted, such as `https://api.example.com/parse`; null: everything is read directly',
  )
  @IsString()
  @Matches(ANY_URL, { message: 'a URL such as https://api.example.com/parse' })
  @Nullable()
  readonly serverUrl: string | null = null;

  @Option('needed with `serverUrl`')
  @IsString()
  @Matches(HEADER_VALUE, { message: 'text of ASCII characters without blanks' })
  @Nullable()
  readonly appId: string | null = null;

  @Option('null: every agent must be in client mode, and `database.uri` is needed')
  @IsString()
  @Matches(HEADER_VALUE, { message: 'text of ASCII characters without blanks' })
  @Nullable()
  readonly masterKey: string | null = null;

  @Option('for servers that require one')
  @IsString()
  @Matches(HEADER_VALUE, { message: 'text of ASCII characters without blanks' })
  @Nullable()
  readonly restApiKey: string | null = null;

  @Option(
    '`none`: no `beforeFind` or `afterFind` of Cloud Code decides what a user reads, so sessions may read [past Parse Server](routes.md#read-hooks); `possible`: one may. Classes say otherwise with `policy.classes.X.readHooks`',
  )
  @IsIn(READ_HOOKS)
  readonly readHooks: ReadHooks = 'possible';

  /** Read as `liveQuery.url`. */
  @Option(
    '`wss://…`: the source of [changes](#subscriptions) where it can serve the agent; null: the database',
    {
      default: null,
    },
  )
  @IsString()
  @Matches(ANY_URL, { message: 'a URL such as wss://api.example.com/parse' })
  @Nullable()
  readonly liveQueryUrl?: string | null;
}

export type ParseConfig = Plain<ParseSection>;

/** The part of `parse` that LiveQuery needs. */
export interface LiveQueryConfig {
  /** `wss://`, or `ws://` on this machine. Null: changes are taken from the database. */
  readonly url: string | null;
  readonly appId: string | null;
  /** For servers that ask clients for one. */
  readonly restApiKey: string | null;
  /** For agents that act with the master key. Null: theirs are taken from the database. */
  readonly masterKey: string | null;
}

export function liveQueryConfig(config: unknown): LiveQueryConfig {
  const { parse } = (config ?? {}) as { parse?: Record<string, string | null | undefined> | null };
  return {
    url: parse?.['liveQueryUrl'] ?? null,
    appId: parse?.['appId'] ?? null,
    restApiKey: parse?.['restApiKey'] ?? null,
    masterKey: parse?.['masterKey'] ?? null,
  };
}
