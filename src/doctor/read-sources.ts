import { existsSync } from 'node:fs';
import {
  overlayOf,
  withEnvironmentFiles,
  configPath,
  type ConfigReference,
  type Environment,
  readConfigFile,
} from '#config';
import type { ConfigSources } from './masked-config.js';

/** Where the values of a configuration come from. @throws ConfigError */
export function readSources(env: Environment, cwd: string): ConfigSources {
  const resolved = withEnvironmentFiles(env);
  const path = configPath(resolved, cwd);
  const references: ConfigReference[] = [];
  const raw = existsSync(path) ? readConfigFile(path, resolved, (one) => references.push(one)) : {};
  const asGiven = (variable: string | null) =>
    variable !== null && env[variable] === undefined ? `${variable}_FILE` : variable;
  const closed = resolved['MCP_API_KEY'] ? 'MCP_API_KEY' : null;
  // The key takes the place of anonymous rules, or of rules that are not there.
  const isClosing = (option: string) => {
    const rules = (raw as { auth?: unknown } | null)?.auth;
    const index = Number(/^auth\.(\d+)\.apiKey$/.exec(option)?.[1] ?? Number.NaN);
    const rule: unknown = Array.isArray(rules) ? rules[index] : null;
    return Number.isInteger(index) && (rules === undefined || isAnonymous(rule));
  };
  return {
    raw,
    references,
    overlay: (option) => asGiven(overlayOf(option, resolved) ?? (isClosing(option) ? closed : null)),
  };
}

const isAnonymous = (rule: unknown): boolean =>
  rule !== null && typeof rule === 'object' && (rule as { anonymous?: unknown }).anonymous === true;
