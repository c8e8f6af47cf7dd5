import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { ConfigError } from './config-faults.js';
import { VARIABLES_FROM_FILES } from './environment-files.js';
import type { Environment } from './read-config-file.js';

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
 * Variables that a `.env` file may set, and with `_FILE` those of secrets. The environment gates are not among them: whoever may
 * write a file must not be able to open one.
 */
export const DOT_ENV_VARIABLES: readonly string[] = [
  ...VARIABLES_FROM_FILES,
  ...VARIABLES_FROM_FILES.map((name) => `${name}_FILE`),
  'PARLEY_CONFIG',
  'PARSE_MCP_ENABLED',
  'PARSE_STRICT_POINTER_SHAPES',
  ...OF_THE_MODEL,
];

/** Bytes. */
const LONGEST = 65_536;

/**
 * What the file `.env` of a folder adds to an environment: known variables that it does not have, in either form (`NAME` or
 * `NAME_FILE`). All others are ignored.
 * @throws ConfigError when there is a file that cannot be read
 */
export function dotEnv(env: Environment, cwd: string): Record<string, string> {
  const text = contentOf(join(cwd, '.env'));
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

function contentOf(path: string): string | null {
  const unusable = (message: string) => new ConfigError(path, [{ path: '', message }]);
  try {
    const text = readFileSync(path, 'utf8');
    if (Buffer.byteLength(text) > LONGEST) throw unusable(`is longer than ${LONGEST} bytes`);
    return text;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof ConfigError) throw error;
    // A folder of that name is nobody's file of variables.
    if (code === 'ENOENT' || code === 'EISDIR' || code === 'ENOTDIR') return null;
    throw unusable(`cannot be read (${code ?? 'unknown'})`);
  }
}
