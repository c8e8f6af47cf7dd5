import { OVERLAID_VARIABLES } from './environment.js';
import { ConfigError, type ConfigFault } from './config-faults.js';
import type { Environment } from './read-config-file.js';
import { readSecretFile, SecretFileError } from './secret-file.js';

/**
 * Variables that `NAME_FILE` may stand for. The environment gates are not among them: whoever may write a file must not be
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
  const { env: resolved, faults } = environmentFiles(env);
  if (faults.length > 0) throw new ConfigError('environment', faults);
  return resolved;
}

/** The same, with what is wrong beside what could be read. */
export function environmentFiles(env: Environment): {
  readonly env: Environment;
  readonly faults: readonly ConfigFault[];
} {
  const faults: ConfigFault[] = [];
  const resolved: Record<string, string | undefined> = { ...env };
  for (const name of VARIABLES_FROM_FILES) {
    const variable = `${name}_FILE`;
    const path = env[variable];
    if (path === undefined || path === '') continue;
    delete resolved[variable];
    if (env[name]) {
      faults.push({ path: variable, message: `is given beside ${name}: one of them must go` });
      continue;
    }
    try {
      resolved[name] = readSecretFile(path);
    } catch (error) {
      if (!(error instanceof SecretFileError)) throw error;
      faults.push({ path: variable, message: error.message });
    }
  }
  return { env: resolved, faults };
}
