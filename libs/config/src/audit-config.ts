import { resolve } from 'node:path';
import type { FsyncPolicy } from '#audit';
import { isSafeAddress } from './approval-faults.js';
import type { ParleyConfig } from './config.js';
import type { ConfigFault } from './config-faults.js';

interface SinkParts {
  /** What happens while it takes no records. Default `refuse`: no call runs. `buffer`: they wait on disk. */
  readonly onFailure: 'refuse' | 'buffer';
}

/** One record a line. */
interface FileSinkConfig extends SinkParts {
  readonly kind: 'file';
  /** Relative to the configuration file. */
  readonly path: string;
  /** Bytes after which the file is put aside. Default 104,857,600. */
  readonly maxBytes: number;
  /** Seconds after which the file is put aside; null: never for its age. Default null. */
  readonly maxAge: number | null;
  /** Default `interval`. */
  readonly fsync: FsyncPolicy;
}

/** A collection that can be searched. */
export interface MongoSinkConfig extends SinkParts {
  readonly kind: 'mongodb';
  /** Default null: the server of `database`. */
  readonly uri: string | null;
  /** Default `parley_audit`. */
  readonly database: string;
  /** Default `records`. */
  readonly collection: string;
  /** Days that a record is kept; null: for ever. Default null. */
  readonly days: number | null;
}

/** Signed batches to somebody else's system. */
interface WebhookSinkConfig extends SinkParts {
  readonly kind: 'webhook';
  readonly url: string;
  readonly secret: string;
}

export type AuditSinkConfig = FileSinkConfig | MongoSinkConfig | WebhookSinkConfig;

/** What is recorded, and where (docs/audit.md). */
export interface AuditConfig {
  /** Records on the application's log. Default true. */
  readonly log: boolean;
  readonly sinks: readonly AuditSinkConfig[];
  /** Folder of the buffers, relative to the configuration file. Default `parley-audit-buffer`. */
  readonly bufferFolder: string;
  /** Bytes that each buffer may have. Default 67,108,864. */
  readonly bufferSize: number;
  /** Seconds for each attempt at a sink. Default 5. */
  readonly timeout: number;
  /** What records call this process. Default null: the name of its host. */
  readonly replica: string | null;
  /** Seconds between two looks at the chains of other replicas. Default 60. */
  readonly anchorInterval: number;
  /** Makes hashes that nobody without it can; at least 32 characters. Default null: SHA-256. */
  readonly chainKey: string | null;
  /** Keys the digests of arguments; at least 32 characters. Default null: a random one that replicas share. */
  readonly digestKey: string | null;
}

const key = { type: ['string', 'null'], minLength: 32 } as const;

export const AUDIT_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    log: { type: 'boolean' },
    sinks: {
      type: 'array',
      maxItems: 8,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['kind'],
        properties: {
          kind: { enum: ['file', 'mongodb', 'webhook'] },
          onFailure: { enum: ['refuse', 'buffer'] },
          path: { type: 'string', minLength: 1 },
          maxBytes: { type: 'integer', minimum: 1024 },
          maxAge: { type: ['number', 'null'], exclusiveMinimum: 0 },
          fsync: { enum: ['always', 'interval', 'never'] },
          uri: { type: ['string', 'null'], pattern: '^mongodb(\\+srv)?://.+$' },
          database: { type: 'string', pattern: '^[^/\\\\. "$*<>:|?\\u0000]{1,63}$' },
          collection: { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_.-]{0,99}$' },
          days: { type: ['number', 'null'], exclusiveMinimum: 0 },
          url: { type: 'string', pattern: '^https?://' },
          secret: { type: 'string', minLength: 16 },
        },
      },
    },
    bufferFolder: { type: 'string', minLength: 1 },
    bufferSize: { type: 'integer', minimum: 4096 },
    timeout: { type: 'number', exclusiveMinimum: 0, maximum: 60 },
    replica: { type: ['string', 'null'], pattern: '^[A-Za-z0-9_.-]{1,128}$' },
    anchorInterval: { type: 'number', minimum: 0.1, maximum: 86_400 },
    chainKey: key,
    digestKey: key,
  },
} as const;

const MEMBERS: Readonly<Record<AuditSinkConfig['kind'], readonly string[]>> = {
  file: ['path', 'maxBytes', 'maxAge', 'fsync'],
  mongodb: ['uri', 'database', 'collection', 'days'],
  webhook: ['url', 'secret'],
};
const NEEDED: Readonly<Record<AuditSinkConfig['kind'], readonly string[]>> = {
  file: ['path'],
  mongodb: [],
  webhook: ['url', 'secret'],
};

const DEFAULTS = {
  file: { onFailure: 'refuse', maxBytes: 104_857_600, maxAge: null, fsync: 'interval' },
  mongodb: { onFailure: 'refuse', uri: null, database: 'parley_audit', collection: 'records', days: null },
  webhook: { onFailure: 'refuse' },
} as const;

export const DEFAULT_AUDIT: AuditConfig = Object.freeze({
  log: true,
  sinks: [],
  bufferFolder: 'parley-audit-buffer',
  bufferSize: 67_108_864,
  timeout: 5,
  replica: null,
  anchorInterval: 60,
  chainKey: null,
  digestKey: null,
});

/** With every default; `base` is the folder of the configuration file. */
export function auditConfig(given: Partial<AuditConfig> | undefined, base: string): AuditConfig {
  const sinks = (given?.sinks ?? []).map((sink) => {
    const filled = { ...DEFAULTS[sink.kind], ...sink } as AuditSinkConfig;
    return filled.kind === 'file' ? { ...filled, path: resolve(base, filled.path ?? '') } : filled;
  });
  const config = { ...DEFAULT_AUDIT, ...given };
  return { ...config, sinks, bufferFolder: resolve(base, config.bufferFolder) };
}

/** What would keep no records, or show them to agents or strangers. */
export function auditFaults({ audit, database }: Pick<ParleyConfig, 'audit' | 'database'>): ConfigFault[] {
  const faults: ConfigFault[] = [];
  const taken = new Set<string>();
  for (const [index, sink] of audit.sinks.entries()) {
    const at = (member: string) => `audit.sinks.${index}.${member}`;
    const given = new Set(Object.keys(sink));
    for (const name of NEEDED[sink.kind])
      if (!given.has(name)) faults.push({ path: at(name), message: `a ${sink.kind} sink needs one` });
    for (const name of given)
      if (name !== 'kind' && name !== 'onFailure' && !MEMBERS[sink.kind].includes(name))
        faults.push({ path: at(name), message: `not an option of a ${sink.kind} sink` });
    if (sink.kind === 'webhook' && sink.url !== undefined && !isSafeAddress(sink.url))
      faults.push({ path: at('url'), message: 'must be an https address, or one of this machine' });
    if (sink.kind === 'mongodb') faults.push(...mongoFaults(sink, database, at));
    const place = placeOf(sink);
    if (taken.has(place))
      faults.push({ path: `audit.sinks.${index}`, message: 'the same place as another sink' });
    taken.add(place);
  }
  return faults;
}

function mongoFaults(
  sink: MongoSinkConfig,
  database: ParleyConfig['database'],
  at: (member: string) => string,
): ConfigFault[] {
  if (sink.uri === null && database.uri === null)
    return [
      {
        path: at('uri'),
        message: 'needed: there is no database to share a server with',
        related: ['database.uri'],
      },
    ];
  if ((sink.uri === null || sink.uri === database.uri) && sink.database === database.name)
    return [
      {
        path: at('database'),
        message: 'must not be the one that agents read',
        related: ['database.uri', 'database.name'],
      },
    ];
  return [];
}

function placeOf(sink: AuditSinkConfig): string {
  switch (sink.kind) {
    case 'file':
      return `file ${sink.path}`;
    case 'mongodb':
      return `mongodb ${sink.uri} ${sink.database} ${sink.collection}`;
    case 'webhook':
      return `webhook ${sink.url}`;
  }
}
