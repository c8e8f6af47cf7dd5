import { existsSync } from 'node:fs';
import {
  overlayOf,
  environmentFiles,
  configPath,
  type ConfigReference,
  type Environment,
  configFile,
} from '#config';
import type { ConfigSources } from './masked-config.js';

/** Where the values of a configuration come from, of all that can be read. */
export function readSources(env: Environment, cwd: string): ConfigSources {
  const { env: resolved } = environmentFiles(env);
  const path = configPath(resolved, cwd);
  const references: ConfigReference[] = [];
  const raw = existsSync(path) ? configFile(path, resolved, (one) => references.push(one)).value : {};
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
