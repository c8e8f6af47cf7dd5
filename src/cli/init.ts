import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ConfigError, configurationSchema } from '#config';
import { DatabaseSurvey, MongoConnection } from '#data-mongo';
import { loadWithPlugins } from '#parley/instance';
import { nameTenantDatabase } from '#policy';
import {
  type FirstConfiguration,
  firstConfiguration,
  furtherClasses,
  KEY_VARIABLE,
  TENANT_VARIABLE,
} from '../init/first-configuration.js';
import { UsageError, withConfig } from './command-options.js';
import { countOf, jsonText } from './text-output.js';

interface InitOptions {
  readonly uri?: string;
  readonly out?: string;
  /** A database beside the first one of the configuration. */
  readonly database?: string;
  /** Of a database for each tenant: whose is read. */
  readonly tenant?: string;
  readonly config?: string;
}

const URI_VARIABLE = 'MONGODB_URI';
const DEFAULT_FILE = 'parley.yaml';
/** The authority of a URI, then its database and its options. */
const URI = /^mongodb(?:\+srv)?:\/\/([^/?#]+)(?:\/([^?#]*))?(\?.*)?$/;
/** The JSON Schema beside the file, and in an installed package, from the folder of the file. */
const SCHEMA_FILE = 'parley.schema.json';
const INSTALLED_SCHEMA = `node_modules/@parley/server/${SCHEMA_FILE}`;
const SECRET_OPTION = /(password|secret|token|mechanismproperties)/i;

/** Reads a live database and writes a first configuration for it, or classes for the one that there is; never over a file. */
export async function runInit(options: InitOptions): Promise<void> {
  if (options.database !== undefined) return writeClasses(options.database, options);
  const { uri: given, out = DEFAULT_FILE, tenant, config } = options;
  if (tenant !== undefined) throw new UsageError('--tenant: is of --database alone');
  if (config !== undefined) throw new UsageError('--config: is of --database alone');
  const uri = given ?? process.env[URI_VARIABLE];
  if (uri === undefined || uri === '')
    throw new UsageError(`--uri: is needed, such as mongodb://127.0.0.1/shop, or set ${URI_VARIABLE}`);
  assertUri(uri);
  const path = out === '-' ? null : resolve(out);
  if (path !== null && existsSync(path)) throw alreadyThere(path);
  const asReference = given === undefined || holdsSecret(uri);
  const connection = new MongoConnection({ uri });
  try {
    const survey = await DatabaseSurvey.of(connection);
    const first = await firstConfiguration(survey, {
      uri: asReference ? `\${${URI_VARIABLE}}` : uri,
      schema: `./${schemaFor(path)}`,
    });
    assertHolds(first, survey, 'check the name of the database at the end of --uri');
    if (path === null) process.stdout.write(first.yaml);
    else {
      write(path, first.yaml);
      writeSchemaFor(path);
    }
    const lines = [
      `${path === null ? 'It has' : `Wrote ${path}:`} ${countOf(first.classes, 'class', 'classes')}.`,
      `Left out: ${countOf(first.leftOut, 'collection')}, ${countOf(first.withheld, 'column')}; comments say which and why.`,
      `Read it, set ${[...(asReference ? [URI_VARIABLE] : []), KEY_VARIABLE, ...(first.hasTenants ? [TENANT_VARIABLE] : [])].join(' and ')}, then run: parley policy check`,
    ];
    process.stderr.write(lines.map((line) => `${line}\n`).join(''));
  } finally {
    await connection.close();
  }
}

/** Classes of a database beside the first one of the configuration: its URI is that of the file. */
async function writeClasses(label: string, { uri, out = '-', tenant, config }: InitOptions): Promise<void> {
  if (uri !== undefined) throw new UsageError('--uri: is that of the configuration, with --database');
  const path = out === '-' ? null : resolve(out);
  if (path !== null && existsSync(path)) throw alreadyThere(path);
  const loaded = await loadWithPlugins(withConfig(config));
  const entry = loaded.config.furtherDatabases[label];
  if (!entry?.uri)
    throw new UsageError(
      `--database: '${label}' is no database beside the first one of the configuration: write one of ${Object.keys(loaded.config.furtherDatabases).join(', ') || 'databases'}`,
    );
  const tenants = loaded.policy.databases.get(label)?.tenants;
  const database = tenants ? nameTenantDatabase(tenants, tenant) : entry.name;
  if (database === null)
    throw new UsageError(
      `--tenant: '${label}' is one database for each tenant: name one that has a database, --tenant acme`,
    );
  const connection = new MongoConnection({ uri: entry.uri, database });
  try {
    const survey = await DatabaseSurvey.of(connection);
    const taken = [...loaded.policy.classes].filter(([, one]) => one.database !== label);
    const found = await furtherClasses(survey, { name: label, taken: new Set(taken.map(([name]) => name)) });
    assertHolds(found, survey, `check databases.${label}.name`);
    if (path === null) process.stdout.write(found.yaml);
    else write(path, found.yaml);
    const { classes, leftOut, withheld } = found;
    process.stderr.write(
      `${path === null ? 'It has' : `Wrote ${path}:`} ${countOf(classes, 'class', 'classes')}.\n` +
        `Left out: ${countOf(leftOut, 'collection')}, ${countOf(withheld, 'column')}; comments say which and why.\n` +
        'Read it, add the classes to those of the configuration, then run: parley policy check\n',
    );
  } finally {
    await connection.close();
  }
}

/** @throws ConfigError */
function assertHolds(
  { classes, leftOut }: FirstConfiguration,
  { database }: DatabaseSurvey,
  advice: string,
): void {
  if (classes > 0 || leftOut > 0) return;
  throw new ConfigError(`the database '${database}'`, [
    { path: '', message: `holds no collection: ${advice}` },
  ]);
}

/** @throws UsageError */
function assertUri(uri: string): void {
  const [, authority = '', database = ''] = URI.exec(uri) ?? [];
  if (authority === '')
    throw new UsageError('--uri: must be mongodb://HOST/DATABASE or mongodb+srv://HOST/DATABASE');
  if (database === '') throw new UsageError('--uri: names no database: write mongodb://HOST/DATABASE');
}

/** Whether a URI must not stand in a file. A character @ of a name or password is written %40. */
export function holdsSecret(uri: string): boolean {
  const [, authority = '', , options = ''] = URI.exec(uri) ?? [];
  return authority.includes('@') || SECRET_OPTION.test(options);
}

/** That of an installed package follows its updates; otherwise a copy stands beside the file. */
function schemaFor(path: string | null): string {
  const folder = path === null ? process.cwd() : dirname(path);
  return existsSync(join(folder, INSTALLED_SCHEMA)) ? INSTALLED_SCHEMA : SCHEMA_FILE;
}

/** An existing copy is kept: `parley schema` renews it. */
function writeSchemaFor(path: string): void {
  if (schemaFor(path) !== SCHEMA_FILE) return;
  const copy = join(dirname(path), SCHEMA_FILE);
  if (!existsSync(copy)) write(copy, jsonText(configurationSchema()));
}

function write(path: string, text: string): void {
  try {
    writeFileSync(path, text, { flag: 'wx' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw alreadyThere(path);
    throw new ConfigError(path, [{ path: '', message: `cannot be written (${code ?? 'unknown'})` }]);
  }
}

function alreadyThere(path: string): ConfigError {
  return new ConfigError(path, [
    {
      path: '',
      message:
        'exists, and is never overwritten: write to another file with --out FILE, or print with --out -',
    },
  ]);
}
