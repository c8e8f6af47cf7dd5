import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import type { FsyncPolicy } from '#audit';
import type { ConfigIssue } from '../config-error.js';
import type { ParleyConfig } from '../config.js';
import type { Environment } from '../environment.js';
import { processNumber } from '../read-config-file.js';
import { readDefaults } from '../schema/class-schema.js';
import {
  ArrayMaxSize,
  IsBoolean,
  IsIn,
  IsInt,
  IsNumber,
  IsPositive,
  IsString,
  Matches,
  Min,
  MinLength,
} from 'class-validator';
import { Nullable } from '#schema';
import { IsText, joinOptions, ListOf, Option, readOptions, type Plain } from '../schema/option.js';
import { isSafeAddress } from './server.js';
import { DATABASE_NAME, readServers } from './stores.js';

/** What sinks of every kind have. */
class Sink {
  @Option('`file`, `mongodb` or `webhook`', { required: true })
  @IsIn(['file', 'mongodb', 'webhook'])
  readonly kind!: 'file' | 'mongodb' | 'webhook';

  @Option('`refuse`: calls are refused while the sink accepts no records. `buffer`: records wait on disk')
  @IsIn(['refuse', 'buffer'])
  readonly onFailure: 'refuse' | 'buffer' = 'refuse';
}

/** One record a line. */
class FileSink extends Sink {
  declare readonly kind: 'file';

  @Option('the file, relative to that of the configuration', { required: true })
  @IsText()
  readonly path!: string;

  @Option('bytes after which the file is rotated')
  @IsInt()
  @Min(1024)
  readonly maxBytes: number = 104_857_600;

  @Option('seconds after which the file is rotated; null: not by age')
  @IsNumber()
  @IsPositive()
  @Nullable()
  readonly maxAge: number | null = null;

  @Option('`always`, `interval` (within a second) or `never`')
  @IsIn(['always', 'interval', 'never'])
  readonly fsync: FsyncPolicy = 'interval';
}

/** A collection that can be searched. */
class MongoSink extends Sink {
  declare readonly kind: 'mongodb';

  @Option('a MongoDB URI; null: the server of `database`')
  @IsString()
  @Matches(/^mongodb(\+srv)?:\/\/.+$/)
  @Nullable()
  readonly uri: string | null = null;

  @Option('name of the database')
  @IsString()
  @Matches(DATABASE_NAME)
  readonly database: string = 'parley_audit';

  @Option('name of the collection')
  @IsString()
  @Matches(/^[A-Za-z_][A-Za-z0-9_.-]{0,99}$/)
  readonly collection: string = 'records';

  @Option('days that a record is kept; null: for ever')
  @IsNumber()
  @IsPositive()
  @Nullable()
  readonly days: number | null = null;
}

export type MongoSinkConfig = Plain<MongoSink>;

/** Signed batches to another system. */
class WebhookSink extends Sink {
  declare readonly kind: 'webhook';

  @Option('where batches are sent: https, or an address of this machine', { required: true })
  @IsString()
  @Matches(/^https?:\/\//)
  readonly url!: string;

  @Option('the secret of the signature of each batch', { required: true })
  @IsString()
  @MinLength(16)
  readonly secret!: string;
}

export type AuditSinkConfig = Plain<FileSink> | MongoSinkConfig | Plain<WebhookSink>;

const SINKS = { file: FileSink, mongodb: MongoSink, webhook: WebhookSink } as const;

/** Which options go with which kind is checked by `auditErrors`. */
const AnySink = joinOptions(Object.values(SINKS), ['kind']);

/** The section `audit`: what is recorded, and where (docs/operations/audit.md). */
export class AuditSection {
  @Option("records on the application's log: refusals with their private cause as warnings")
  @IsBoolean()
  readonly log: boolean = true;

  @Option('where records are kept, at most 8')
  @ListOf(AnySink)
  @ArrayMaxSize(8)
  readonly sinks: readonly AuditSinkConfig[] = [];

  @Option('where records wait on disk for sinks with `onFailure: buffer`, relative to the file')
  @IsText()
  readonly bufferFolder: string = 'parley-audit-buffer';

  @Option('maximum bytes of each of these buffers')
  @IsInt()
  @Min(4096)
  readonly bufferSize: number = 67_108_864;

  @Option('the name of this process in records; `null`: the host name')
  @IsString()
  @Matches(/^[A-Za-z0-9_.-]{1,128}$/)
  @Nullable()
  readonly replica: string | null = null;

  @Option('key of the HMAC-SHA256 that chains records, at least 32 characters; `null`: plain SHA-256')
  @IsString()
  @MinLength(32)
  @Nullable()
  readonly chainKey: string | null = null;

  @Option('key of `args_digest`, at least 32 characters; `null`: a random key that replicas share over Redis')
  @IsString()
  @MinLength(32)
  @Nullable()
  readonly digestKey: string | null = null;
}

export type AuditConfig = Plain<AuditSection>;

/**
 * With every default; `base` is the folder of the configuration file. One of several processes has a name and a buffer of its own,
 * the same ones after a restart.
 */
export function auditConfig(
  given: Partial<AuditConfig> | undefined,
  base: string,
  env: Environment,
): AuditConfig {
  const sinks = (given?.sinks ?? []).map((sink) => {
    const filled = { ...readDefaults<object>(SINKS[sink.kind]), ...sink } as AuditSinkConfig;
    return filled.kind === 'file' ? { ...filled, path: resolve(base, filled.path ?? '') } : filled;
  });
  const config = { ...readDefaults(AuditSection), ...given };
  const bufferFolder = resolve(base, config.bufferFolder);
  const number = processNumber(env);
  if (number === null) return { ...config, sinks, bufferFolder };
  return {
    ...config,
    sinks,
    bufferFolder: join(bufferFolder, `process-${number}`),
    replica: `${config.replica ?? hostname()}-${number}`,
  };
}

/** The files and folders that one process alone may write, each by its option. */
export function listAuditPaths({ sinks, bufferFolder }: AuditConfig): readonly (readonly [string, string])[] {
  const files = sinks.flatMap((sink, index) =>
    sink.kind === 'file' ? [[`audit.sinks.${index}.path`, sink.path] as const] : [],
  );
  const isBuffered = sinks.some(({ onFailure }) => onFailure === 'buffer');
  return isBuffered ? [...files, ['audit.bufferFolder', bufferFolder]] : files;
}

/** What would keep no records, or show them to agents or strangers. */
export function auditErrors({ audit, database }: Pick<ParleyConfig, 'audit' | 'database'>): ConfigIssue[] {
  const errors: ConfigIssue[] = [];
  const taken = new Set<string>();
  for (const [index, sink] of audit.sinks.entries()) {
    const at = (member: string) => `audit.sinks.${index}.${member}`;
    const given = new Set(Object.keys(sink));
    const options = readOptions(SINKS[sink.kind]);
    for (const [name, { required }] of options)
      if (required && !given.has(name))
        errors.push({ path: at(name), message: `a ${sink.kind} sink needs one` });
    for (const name of given)
      if (!options.has(name))
        errors.push({ path: at(name), message: `not an option of a ${sink.kind} sink` });
    if (sink.kind === 'webhook' && sink.url !== undefined && !isSafeAddress(sink.url))
      errors.push({ path: at('url'), message: 'must be an https address, or one of this machine' });
    if (sink.kind === 'mongodb') errors.push(...mongoSinkErrors(sink, database, at));
    const places = listPlaces(sink, database.uri);
    if (places.some((place) => taken.has(place)))
      errors.push({ path: `audit.sinks.${index}`, message: 'the same place as another sink' });
    for (const place of places) taken.add(place);
  }
  return errors;
}

function mongoSinkErrors(
  sink: MongoSinkConfig,
  database: ParleyConfig['database'],
  at: (member: string) => string,
): ConfigIssue[] {
  if (sink.uri === null && database.uri === null)
    return [
      {
        path: at('uri'),
        message: 'needed: there is no database to share a server with',
        related: ['database.uri'],
      },
    ];
  const servers = new Set(readServers(database.uri ?? ''));
  const isShared = sink.uri === null || readServers(sink.uri).some((server) => servers.has(server));
  if (isShared && sink.database === database.name)
    return [
      {
        path: at('database'),
        message: 'must not be the one that agents read',
        related: ['database.uri', 'database.name'],
      },
    ];
  return [];
}

/** Where a sink keeps records: a key for each way to name it. Sinks that have one in common share them. */
export function listPlaces(sink: AuditSinkConfig, databaseUri: string | null): readonly string[] {
  switch (sink.kind) {
    case 'file':
      return [`file ${sink.path}`];
    case 'mongodb':
      return readServers(sink.uri ?? databaseUri ?? '').map(
        (server) => `mongodb ${server} ${sink.database} ${sink.collection}`,
      );
    case 'webhook':
      return [`webhook ${sink.url}`];
  }
}
