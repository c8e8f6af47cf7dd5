import type { ConfigIssue } from '../config-error.js';
import type { ParleyConfig } from '../config.js';
import { readOptions } from '../schema/option.js';
import { isSafeAddress } from '../sections/server.js';
import { readServers } from '../sections/stores.js';
import { type AuditSinkConfig, type MongoSinkConfig, SINKS } from '../sections/audit.js';

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
