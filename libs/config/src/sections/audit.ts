import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import type { FsyncPolicy } from '#audit';
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
import { IsText, joinOptions, ListOf, Option, type Plain } from '../schema/option.js';
import { DATABASE_NAME, IN_DATABASE_NAMES } from './stores.js';

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

/** The database of records where a sink names none. */
export const AUDIT_DATABASE = 'parley_audit';

/** A collection that can be searched. */
class MongoSink extends Sink {
  declare readonly kind: 'mongodb';

  @Option('a MongoDB URI; null: the server of `database`')
  @IsString()
  @Matches(/^mongodb(\+srv)?:\/\/.+$/, { message: 'a URI with mongodb:// or mongodb+srv://' })
  @Nullable()
  readonly uri: string | null = null;

  @Option('name of the database')
  @IsString()
  @Matches(DATABASE_NAME, IN_DATABASE_NAMES)
  readonly database: string = AUDIT_DATABASE;

  @Option('name of the collection')
  @IsString()
  @Matches(/^[A-Za-z_][A-Za-z0-9_.-]{0,99}$/, {
    message: 'a letter or _, then letters, digits and _ . -, 100 characters at most',
  })
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
  @Matches(/^https?:\/\//, { message: 'a URL with http:// or https://' })
  readonly url!: string;

  @Option('the secret of the signature of each batch', { required: true })
  @IsString()
  @MinLength(16)
  readonly secret!: string;
}

export type AuditSinkConfig = Plain<FileSink> | MongoSinkConfig | Plain<WebhookSink>;

export const SINKS = { file: FileSink, mongodb: MongoSink, webhook: WebhookSink } as const;

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
  @Matches(/^[A-Za-z0-9_.-]{1,128}$/, { message: '1 to 128 letters, digits and _ . -' })
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

  @Option('how records name the row that a call writes: `id`, `digest` (equal for equal rows) or `none`')
  @IsIn(['id', 'digest', 'none'])
  readonly objects: 'id' | 'digest' | 'none' = 'digest';
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
