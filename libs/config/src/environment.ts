import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { withoutMark, isJsonObject, type JsonObject } from '#core';
import { ConfigError, type ConfigIssue, describeUnreadable } from './config-error.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Environment variables that win over the file, and where they go. */
const OVERLAYS: readonly (readonly [variable: string, section: string, key: string])[] = [
  ['HOST', 'server', 'host'],
  ['PORT', 'server', 'port'],
  ['MONGODB_URI', 'database', 'uri'],
  ['PARLEY_SEED', 'database', 'seed'],
  ['PARLEY_STATE_KEY', 'server', 'stateKey'],
  ['REDIS_URL', 'redis', 'url'],
  ['PARSE_SERVER_URL', 'parse', 'serverUrl'],
  ['PARSE_APP_ID', 'parse', 'appId'],
  ['PARSE_MASTER_KEY', 'parse', 'masterKey'],
  ['PARSE_LIVE_QUERY_URL', 'parse', 'liveQueryUrl'],
  // The name that older tools of Parse use; the other one wins.
  ['PARSE_API_KEY', 'parse', 'restApiKey'],
  ['PARSE_REST_API_KEY', 'parse', 'restApiKey'],
];

export const OVERLAID_VARIABLES: readonly string[] = OVERLAYS.map(([variable]) => variable);

/** Which variable, if any, gives an option its value. */
export function findOverlay(path: string, env: Environment): string | null {
  const own = OVERLAYS.findLast(
    ([variable, section, key]) => path === `${section}.${key}` && Boolean(env[variable]),
  );
  return own?.[0] ?? null;
}

/** The variables that replace options of the file, each as `NAME (option)`. */
export function findOverlays(env: Environment): readonly string[] {
  return OVERLAYS.flatMap(([variable, section, key]) =>
    env[variable] || env[`${variable}_FILE`] ? [`${variable} (${section}.${key})`] : [],
  );
}

function parseTyped(variable: string, value: string, errors: ConfigIssue[]): unknown {
  if (variable !== 'PORT') return value;
  if (/^\d{1,5}$/.test(value)) return Number(value);
  errors.push({ path: 'PORT', message: 'must be a port number' });
  return undefined;
}

/**
 * Lays the environment over the file. `MCP_API_KEY` closes anonymous access: every anonymous rule then requires that key,
 * and without any rule the key admits to the first agent.
 */
export function overlayEnvironment(raw: unknown, env: Environment, errors: ConfigIssue[]): unknown {
  if (!isJsonObject(raw)) return raw;
  const config: Record<string, unknown> = { ...raw };
  for (const [variable, section, key] of OVERLAYS) {
    const value = env[variable];
    if (value === undefined || value === '') continue;
    const laid = parseTyped(variable, value, errors);
    if (section === 'database' && isJsonObject(config['databases']))
      config['databases'] = overlayFirst(config['databases'], key, laid);
    else if (isJsonObject(config[section] ?? {}))
      config[section] = { ...(config[section] as JsonObject | undefined), [key]: laid };
  }
  const apiKey = env['MCP_API_KEY'];
  if (apiKey) config['auth'] = withApiKey(config, apiKey);
  return config;
}

/** The variables of the database are those of the first one. */
function overlayFirst(databases: JsonObject, key: string, value: unknown): JsonObject {
  const [[name, first] = []] = Object.entries(databases);
  return name === undefined || !isJsonObject(first)
    ? databases
    : { ...databases, [name]: { ...first, [key]: value } };
}

function withApiKey(config: JsonObject, apiKey: string): unknown {
  const { auth, agents } = config;
  if (auth === undefined) {
    const first = isJsonObject(agents) ? Object.keys(agents)[0] : undefined;
    return [{ apiKey, agent: first ?? 'default' }];
  }
  if (!Array.isArray(auth)) return auth;
  return auth.map((rule: unknown) =>
    isJsonObject(rule) && rule['anonymous'] === true ? closeRule(rule, apiKey) : rule,
  );
}

/** Its name and its end stay. */
function closeRule({ agent, name, expires }: JsonObject, apiKey: string): JsonObject {
  return { apiKey, agent, ...(name !== undefined && { name }), ...(expires !== undefined && { expires }) };
}

/**
 * Variables that `NAME_FILE` may stand for. The environment gates are not among them: who may write a file must not be
 * able to open one.
 */
export const VARIABLES_FROM_FILES: readonly string[] = [
  ...OVERLAID_VARIABLES,
  'MCP_API_KEY',
  'PARSE_SESSION_TOKEN',
];

/**
 * The environment with the contents of the files that `NAME_FILE` names.
 * @throws ConfigError listing files that cannot be read and variables that are given in both ways
 */
export function withEnvironmentFiles(env: Environment): Environment {
  const { env: resolved, errors } = environmentFiles(env);
  if (errors.length > 0) throw new ConfigError('environment', errors);
  return resolved;
}

/** The same, with what is wrong beside what could be read. */
export function environmentFiles(env: Environment): {
  readonly env: Environment;
  readonly errors: readonly ConfigIssue[];
} {
  const errors: ConfigIssue[] = [];
  const resolved: Record<string, string | undefined> = { ...env };
  for (const name of VARIABLES_FROM_FILES) {
    const variable = `${name}_FILE`;
    const path = env[variable];
    if (path === undefined || path === '') continue;
    delete resolved[variable];
    if (env[name]) {
      errors.push({ path: variable, message: `is given beside ${name}: one of them must go` });
      continue;
    }
    try {
      resolved[name] = readSecretFile(path);
    } catch (error) {
      if (!(error instanceof SecretFileError)) throw error;
      errors.push({ path: variable, message: error.message });
    }
  }
  return { env: resolved, errors };
}

/** Variables of the language model, of chat and console alone. */
const OF_THE_MODEL = [
  'LLM_PROVIDER',
  'LLM_MODEL',
  'LLM_BASE_URL',
  'LLM_ENDPOINT',
  'LLM_API_KEY',
  'MCP_CHAT_TRACE',
];

/**
 * Variables that a `.env` file may set, and with `_FILE` those of secrets. The environment gates are not among them: who may
 * write a file must not be able to open one.
 */
const DOT_ENV_VARIABLES: readonly string[] = [
  ...VARIABLES_FROM_FILES,
  ...VARIABLES_FROM_FILES.map((name) => `${name}_FILE`),
  'PARLEY_CONFIG',
  'PARSE_MCP_ENABLED',
  'PARSE_STRICT_POINTER_SHAPES',
  ...OF_THE_MODEL,
];

/** Bytes of a `.env` file. */
const LONGEST_DOT_ENV = 65_536;

/**
 * What the file `.env` of a folder adds to an environment: known variables that it does not have, in either form (`NAME` or
 * `NAME_FILE`). All others are ignored.
 * @throws ConfigError when there is a file that cannot be read
 */
export function dotEnv(env: Environment, cwd: string): Record<string, string> {
  const text = dotEnvText(join(cwd, '.env'));
  if (text === null) return {};
  const isGiven = (name: string) => env[name] !== undefined && env[name] !== '';
  const found = parseEnv(text) as Readonly<Record<string, string | undefined>>;
  return Object.fromEntries(
    DOT_ENV_VARIABLES.flatMap((name) => {
      const value = Object.hasOwn(found, name) ? found[name] : undefined;
      const plain = name.replace(/_FILE$/, '');
      if (value === undefined || value === '' || isGiven(plain) || isGiven(`${plain}_FILE`)) return [];
      return [[name, value]];
    }),
  );
}

function dotEnvText(path: string): string | null {
  const unusable = (message: string) => new ConfigError(path, [{ path: '', message }]);
  try {
    const text = withoutMark(readFileSync(path, 'utf8'));
    if (Buffer.byteLength(text) > LONGEST_DOT_ENV) throw unusable(`is longer than ${LONGEST_DOT_ENV} bytes`);
    return text;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof ConfigError) throw error;
    // A folder of that name is no file of variables.
    if (code === 'ENOENT' || code === 'EISDIR' || code === 'ENOTDIR') return null;
    throw unusable(describeUnreadable(error));
  }
}

/** Bytes of one secret: keys, passwords and certificates are far shorter. */
const MAX_SECRET_BYTES = 65_536;

/** Why a secret could not be read; names the file and never what is in it. */
export class SecretFileError extends Error {
  override readonly name = 'SecretFileError';
}

/**
 * The text of a file that holds one secret, without the line end that editors leave.
 * @throws SecretFileError
 */
export function readSecretFile(path: string): string {
  const bytes = readBounded(path);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new SecretFileError(`${path} is not UTF-8 text`);
  }
  const secret = text.replace(/\r?\n$/, '');
  // An empty key would count as none, which opens what the key was to close.
  if (secret.trim() === '') throw new SecretFileError(`${path} is empty`);
  if (secret.includes('\0')) throw new SecretFileError(`${path} is not text`);
  return secret;
}

function readBounded(path: string): Buffer {
  let descriptor: number;
  try {
    // A pipe without a writer must not block the start.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw unreadable(path, error);
  }
  try {
    if (!fstatSync(descriptor).isFile()) throw new SecretFileError(`${path} is not a file`);
    const buffer = Buffer.alloc(MAX_SECRET_BYTES + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read)
      read = readSync(descriptor, buffer, length, buffer.length - length, null);
    if (length > MAX_SECRET_BYTES)
      throw new SecretFileError(`${path} is longer than ${MAX_SECRET_BYTES} bytes`);
    return buffer.subarray(0, length);
  } catch (error) {
    throw error instanceof SecretFileError ? error : unreadable(path, error);
  } finally {
    closeSync(descriptor);
  }
}

function unreadable(path: string, error: unknown): SecretFileError {
  return new SecretFileError(`${path} ${describeUnreadable(error)}`);
}
