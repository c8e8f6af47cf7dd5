import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type AuditCollection, fileSource, type RecordSource } from '#audit';
import { MongoAuditCollection, MongoConnection } from '#data-mongo';
import type { AuditConfig, MongoSinkConfig, ParleyConfig } from '#config';

/** What a full file is put aside under. */
const PUT_ASIDE = /^\.\d{8}T\d{9}Z(-\d+)?$/;

/** Files that were named, or those of the configured sinks with what was put aside, oldest first. @throws Error when one is not there */
export function auditFiles(named: readonly string[], { sinks }: AuditConfig): RecordSource[] {
  const paths =
    named.length > 0
      ? named
      : sinks.flatMap((sink) => (sink.kind === 'file' ? [...putAside(sink.path), sink.path] : []));
  for (const path of paths) if (!existsSync(path)) throw new Error(`${path}: there is no such file`);
  return paths.map(fileSource);
}

function putAside(path: string): string[] {
  const name = basename(path);
  if (!existsSync(dirname(path))) return [];
  return readdirSync(dirname(path))
    .filter((entry) => entry.startsWith(name) && PUT_ASIDE.test(entry.slice(name.length)))
    .sort()
    .map((entry) => join(dirname(path), entry));
}

/** The configured collections; those beside an embedded database ended with its process. */
export function auditCollections({ audit, database }: ParleyConfig): AuditCollection[] {
  return audit.sinks
    .filter((sink): sink is MongoSinkConfig => sink.kind === 'mongodb')
    .flatMap((sink) => {
      const uri = sink.uri ?? database.uri;
      if (uri === null || uri === 'embedded') return [];
      const connection = new MongoConnection({ uri, database: sink.database });
      const { collection } = sink;
      return [new MongoAuditCollection({ connection, collection, lifetime: null, ownsConnection: true })];
    });
}
