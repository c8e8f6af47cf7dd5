import { LiveQuerySource } from '#data-parse';
import type { ConfigIssue } from '../config-error.js';
import type { ParleyConfig } from '../config.js';
import { IDENTITY_OPTIONS } from '#core';
import { type Policy, READ_HOOKS, type ReadHooks, type StorageForm } from '#policy';
import { IsBoolean, IsIn, IsString, Matches } from 'class-validator';
import { Nullable } from '#schema';
import { Option, type Plain } from '../schema/option.js';
import { isSection, type Section } from '../section.js';
import type { AgentConfig } from './agents.js';
import { redisErrors } from './redis.js';

export const DATABASE_NAME = /^[^/\\. "$*<>:|?\u0000]{1,63}$/;
const ANY_URL = /^[a-z]+:\/\//;
/** What can stand in a header. */
const HEADER_VALUE = /^[\x21-\x7e]+$/;

/** The section `database`: the MongoDB that holds the rows. */
export class DatabaseSection {
  @Option(
    '`embedded`, or a `mongodb://` / `mongodb+srv://` URI; with a Parse Server, the database of that server; default there null: no direct access',
  )
  @IsString()
  @Matches(/^(embedded|mongodb(\+srv)?:\/\/.+)$/)
  @Nullable()
  readonly uri: string | null = 'embedded';

  @Option('database; default: the one that `uri` names, else `parley`', { default: 'parley' })
  @IsString()
  @Matches(DATABASE_NAME)
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

/** Databases of the server's own; a URI names `admin` to say where its user is known. */
const SERVER_DATABASES: ReadonlySet<string> = new Set(['admin', 'local', 'config']);

/** The database of a configuration that names none: that of the URI, else ours. */
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
  @Matches(ANY_URL)
  @Nullable()
  readonly serverUrl: string | null = null;

  @Option('needed with `serverUrl`')
  @IsString()
  @Matches(HEADER_VALUE)
  @Nullable()
  readonly appId: string | null = null;

  @Option('null: every agent must be in client mode, and `database.uri` is needed')
  @IsString()
  @Matches(HEADER_VALUE)
  @Nullable()
  readonly masterKey: string | null = null;

  @Option('for servers that require one')
  @IsString()
  @Matches(HEADER_VALUE)
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
  @Matches(ANY_URL)
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

/** Addresses that fit their pattern and are none. `redis.url` may hold a password, so no error repeats it. */
export function storeAddressErrors(config: Section): ConfigIssue[] {
  const { redis } = config;
  return [...(isSection(redis) ? redisErrors(redis) : []), ...liveQueryErrors(config)];
}

function liveQueryErrors(config: Section): ConfigIssue[] {
  const { url, appId } = liveQueryConfig(config);
  if (typeof url !== 'string') return [];
  if (typeof appId !== 'string')
    return [{ path: 'parse.appId', message: 'is needed with parse.liveQueryUrl' }];
  const message = LiveQuerySource.urlFault(url);
  return message === null ? [] : [{ path: 'parse.liveQueryUrl', message }];
}

/** Checks beyond the form of `parse` and of the database beside it. */
export function parseServerErrors({
  parse,
  database,
  agents,
}: Pick<ParleyConfig, 'parse' | 'database' | 'agents'>): ConfigIssue[] {
  const errors: ConfigIssue[] = [];
  const add = (path: string, message: string, ...related: string[]) =>
    errors.push({ path, message, related });
  if (parse.serverUrl === null) {
    if (database.uri === null)
      add('database.uri', 'is needed where there is no parse.serverUrl', 'parse.serverUrl');
    return errors;
  }
  if (!isPlainAddress(parse.serverUrl))
    add('parse.serverUrl', 'must be an http or https URL without user, query and fragment');
  if (parse.appId === null) add('parse.appId', 'is needed with parse.serverUrl');
  if (database.uri === 'embedded')
    add('database.uri', "beside a Parse Server it must be that server's own database, or null");
  if (database.uri === null && database.seed !== null)
    add('database.seed', 'there is no database to be seeded: rows are those of Parse Server', 'database.uri');
  if (database.uri === null && parse.masterKey === null)
    add(
      'parse.masterKey',
      'is needed without database.uri: classes and permissions are read with it',
      'database.uri',
    );
  for (const [name, { identity }] of Object.entries(agents)) {
    if (database.uri === null && typeof identity === 'object' && 'impersonate' in identity)
      add(
        `agents.${name}.identity`,
        'needs database.uri: sessions of others are looked for there',
        'database.uri',
      );
  }
  return errors;
}

/**
 * What plain collections do not go together with. Their rows name no Parse user and no role, so an agent that reads with the
 * rights of one could read all of them or none.
 */
export function plainStorageErrors(
  { parse, database, agents, auth }: Pick<ParleyConfig, 'parse' | 'database' | 'agents' | 'auth'>,
  policy: Policy,
): ConfigIssue[] {
  const plain = [...policy.classes.values()].find((declared) => declared.plain !== null);
  if (database.storage === 'parse' && !plain) return [];
  const errors: ConfigIssue[] = [];
  const option =
    database.storage === 'plain' ? 'database.storage' : `policy.classes.${plain?.className}.storage`;
  if (parse.serverUrl !== null)
    errors.push({
      path: option,
      message:
        'cannot be plain beside parse.serverUrl, which serves Parse classes alone: serve plain collections by a configuration without it',
      related: ['parse.serverUrl'],
    });
  if (database.storage === 'parse') return errors;
  for (const [name, agent] of Object.entries(agents)) {
    const given = (['identity', ...IDENTITY_OPTIONS, 'clientMode'] as const).find((one) =>
      isOfParse(agent, one),
    );
    if (given === undefined) continue;
    errors.push({
      path: `agents.${name}.${given}`,
      message:
        'reads with the rights of a Parse user, role or session, which plain collections do not have: leave it out, and limit rows by tenantId or by filters with { $agent: user }',
      related: ['database.storage'],
    });
  }
  for (const [index, rule] of auth.entries()) {
    if ('parseSession' in rule)
      errors.push({
        path: `auth.${index}.parseSession`,
        message:
          'accepts sessions of Parse, which a plain database does not have: write apiKey, oauth or clientCertificate',
        related: ['database.storage'],
      });
  }
  return errors;
}

/** Whether an option gives the agent another identity than the master key. */
function isOfParse(agent: AgentConfig, option: keyof AgentConfig): boolean {
  const value = agent[option];
  if (option === 'impersonationLabel' || option === 'impersonateLabel') return false;
  return value !== undefined && value !== null && value !== false && value !== '' && value !== 'master';
}

function isPlainAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && [username, password, search, hash].every((part) => part === '');
}

/**
 * Without a master key every agent is in client mode.
 * @param errors receives an error for every agent that sets `clientMode: false`
 */
export function inClientMode(
  agents: Readonly<Record<string, AgentConfig>>,
  errors: ConfigIssue[],
): Record<string, AgentConfig> {
  return Object.fromEntries(
    Object.entries(agents).map(([name, agent]) => {
      if (agent.clientMode === false)
        errors.push({
          path: `agents.${name}.clientMode`,
          message: 'cannot be false without parse.masterKey',
          related: ['parse.masterKey'],
        });
      return [name, { ...agent, clientMode: true }];
    }),
  );
}
