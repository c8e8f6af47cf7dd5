import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ConfigError, configurationSchema } from '#config';
import { DatabaseSurvey, MongoConnection } from '#data-mongo';
import { firstConfiguration, KEY_VARIABLE, TENANT_VARIABLE } from '../init/first-configuration.js';
import { UsageError } from './command-options.js';
import { countOf, jsonText } from './text-output.js';

export interface InitOptions {
  readonly uri?: string;
  readonly out?: string;
}

const URI_VARIABLE = 'MONGODB_URI';
const DEFAULT_FILE = 'parley.yaml';
/** The authority of a URI, then its database and its options. */
const URI = /^mongodb(?:\+srv)?:\/\/([^/?#]+)(?:\/([^?#]*))?(\?.*)?$/;
/** The JSON Schema beside the file, and in an installed package, from the folder of the file. */
const SCHEMA_FILE = 'parley.schema.json';
const INSTALLED_SCHEMA = `node_modules/@parley/server/${SCHEMA_FILE}`;
const SECRET_OPTION = /(password|secret|token|mechanismproperties)/i;

/** Reads a live database and writes a first configuration for it, never over a file. */
export async function runInit({ uri: given, out = DEFAULT_FILE }: InitOptions): Promise<void> {
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
    if (first.classes === 0 && first.leftOut === 0)
      throw new ConfigError(`the database '${survey.database}'`, [
        { path: '', message: 'holds no collection: check the name of the database at the end of --uri' },
      ]);
    if (path === null) process.stdout.write(first.yaml);
    else {
      write(path, first.yaml);
      writeSchemaFor(path);
    }
    const lines = [
      `${path === null ? 'It has' : `Wrote ${path}:`} ${countOf(first.classes, 'class', 'classes')}.`,
      `Left out: ${countOf(first.leftOut, 'collection')}, ${countOf(first.withheld, 'column')} that may be secret or personal.`,
      `Read it, set ${[...(asReference ? [URI_VARIABLE] : []), KEY_VARIABLE, ...(first.hasTenants ? [TENANT_VARIABLE] : [])].join(' and ')}, then run: parley policy check`,
    ];
    process.stderr.write(lines.map((line) => `${line}\n`).join(''));
  } finally {
    await connection.close();
  }
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
  if (!existsSync(copy)) write(copy, `${jsonText(configurationSchema())}\n`);
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
