import { IsBoolean } from 'class-validator';
import {
  findPatternProblem,
  type FurtherDatabase,
  mayShareNames,
  TENANT_PLACE,
  type TenantDatabases,
} from '#policy';
import type { ConfigIssue } from '../config-error.js';
import { readDefaults } from '../schema/class-schema.js';
import { Option, type Plain } from '../schema/option.js';
import { AUDIT_DATABASE } from './audit.js';
import {
  type DatabaseConfig,
  DatabaseSection,
  OPENED_BY_APPLICATION,
  readDatabaseName,
  readServers,
} from './stores.js';
import { isJsonObject, type JsonObject } from '#core';

/** One of the section `databases`. */
export class DatabaseEntry extends DatabaseSection {
  @Option(
    'whether the service waits for it: `false` leaves `/ready` at 200 while it is away, and only calls of its classes are refused. The first one is always required',
  )
  @IsBoolean()
  readonly required: boolean = true;
}

/** A database beside the first one. */
export type FurtherDatabaseConfig = Plain<DatabaseEntry>;

/** The names of `databases`: they stand in records, metrics and messages. */
export const DATABASE_LABEL = '^[A-Za-z][A-Za-z0-9_-]{0,31}$';

/** The databases of a configuration: the one that has users, roles and sessions, and those beside it. */
export interface GivenDatabases {
  /** What classes call the first one; undefined: it has no name. */
  readonly name: string | undefined;
  /** The section of the first one as it is written. */
  readonly first: Partial<DatabaseConfig> | undefined;
  /** The others, with their defaults. */
  readonly further: Readonly<Record<string, FurtherDatabaseConfig>>;
}

/** Reads `databases`, whose short form for one is `database`. */
export function readDatabases(given: JsonObject): GivenDatabases {
  const { database, databases } = given as {
    database?: Partial<DatabaseConfig>;
    databases?: Record<string, Partial<FurtherDatabaseConfig>>;
  };
  const [[name, first] = [], ...others] = Object.entries(databases ?? {});
  return {
    name,
    first: name === undefined ? database : first,
    further: Object.fromEntries(
      others.map(([label, entry]) => [
        label,
        { ...readDefaults(DatabaseEntry), ...entry, name: entry.name ?? readDatabaseName(entry.uri ?? null) },
      ]),
    ),
  };
}

/** The names that a configuration has for databases. */
interface NamedDatabases {
  readonly database: { readonly name: string };
  readonly furtherDatabases: Readonly<Record<string, { readonly name: string }>>;
  readonly audit?: { readonly sinks?: readonly object[] } | undefined;
}

/** The databases of tenants of an entry with that name; undefined: it is one database. */
export function readTenantDatabases(
  name: string,
  { database, furtherDatabases, audit }: NamedDatabases,
): TenantDatabases | undefined {
  if (!name.includes(TENANT_PLACE)) return undefined;
  const audited = (audit?.sinks ?? []).flatMap((sink) =>
    'database' in sink && typeof sink.database === 'string' ? [sink.database] : [],
  );
  const others = [database, ...Object.values(furtherDatabases)].map((one) => one.name);
  const taken = [...others, ...audited, AUDIT_DATABASE].map((one) => one.toLowerCase());
  return { pattern: name, taken: [...new Set(taken)] };
}

/** What compiling a policy needs of them. */
export function databasesOfPolicy(given: JsonObject) {
  const { name, first, further } = readDatabases(given);
  const named: NamedDatabases = {
    database: { name: first?.name ?? readDatabaseName(first?.uri ?? null) },
    furtherDatabases: further,
    audit: given['audit'] as NamedDatabases['audit'],
  };
  const databases = new Map<string, FurtherDatabase>(
    Object.entries(further).map(([label, entry]) => {
      const tenants = readTenantDatabases(entry.name, named);
      return [label, { storage: entry.storage, readOnly: entry.readOnly, ...(tenants && { tenants }) }];
    }),
  );
  return {
    storage: first?.storage ?? 'parse',
    readOnly: first?.readOnly ?? false,
    databaseName: name,
    databases,
  } as const;
}

/** Errors beyond the form of `databases`. */
export function databasesErrors(given: JsonObject): ConfigIssue[] {
  const { databases, parse } = given;
  if (!isJsonObject(databases)) return [];
  const errors: ConfigIssue[] = [];
  const add = (path: string, message: string, ...related: string[]) =>
    errors.push({ path, message, related });
  if (given['database'] !== undefined)
    add('database', 'is the short form for one database: write it as the first of databases', 'databases');
  const { name: first, further } = readDatabases(given);
  if (first === undefined) add('databases', 'must name a database');
  const main = databases[first ?? ''];
  if (isJsonObject(main) && main['required'] === false)
    add(
      `databases.${first}.required`,
      'must be true: the first one has users, roles and sessions, without which no call is judged',
    );
  const names = Object.keys(further);
  if (names.length > 0 && isJsonObject(parse) && typeof parse['serverUrl'] === 'string')
    add(
      `databases.${names[0]}`,
      'cannot stand beside parse.serverUrl, which serves the classes of one database: serve the others by a configuration without it',
      'parse.serverUrl',
    );
  if (isJsonObject(main) && typeof main['name'] === 'string' && /[{}]/.test(main['name']))
    add(
      `databases.${first}.name`,
      'must be one database: it has users, roles and sessions; write databases of tenants as a further one',
    );
  for (const [label, { name: pattern }] of Object.entries(further)) {
    if (typeof pattern !== 'string' || !/[{}]/.test(pattern)) continue;
    const problem = findPatternProblem(pattern);
    if (problem !== null) add(`databases.${label}.name`, problem);
    for (const [other, { name: its }] of Object.entries(further)) {
      if (its === pattern || typeof its !== 'string' || !its.includes(TENANT_PLACE)) continue;
      // One server may have two addresses.
      if (mayShareNames(pattern, its))
        add(
          `databases.${label}.name`,
          `may be the name of a database of another tenant in '${other}': begin or end them differently`,
          `databases.${other}.name`,
        );
    }
  }
  const places = new Map<string, string>();
  const place = (label: string, { uri = null, name }: Partial<DatabaseConfig>) => {
    if (typeof uri !== 'string' || uri === 'embedded' || uri === OPENED_BY_APPLICATION) return;
    const database = name ?? readDatabaseName(uri);
    for (const server of readServers(uri)) {
      const key = JSON.stringify([server, database]);
      const known = places.get(key);
      if (known !== undefined && known !== label)
        add(
          `databases.${label}.name`,
          `'${database}' is the database of '${known}' too: one class would have two sets of rules; keep one of them`,
          `databases.${known}`,
        );
      places.set(key, label);
    }
  };
  if (isJsonObject(main)) place(first as string, main);
  for (const [label, entry] of Object.entries(further)) {
    if (entry.uri === 'embedded' || entry.uri === null)
      add(`databases.${label}.uri`, 'is needed: only the first one may be the embedded database');
    if (entry.seed !== null)
      add(`databases.${label}.seed`, 'fills the embedded database, which only the first one may be');
    place(label, entry);
  }
  return errors;
}
