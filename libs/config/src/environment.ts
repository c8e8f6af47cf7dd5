import type { ConfigFault } from './config-faults.js';
import type { Environment } from './read-config-file.js';
import { isSection, type Section } from './section.js';

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
  ['PARSE_REST_API_KEY', 'parse', 'restApiKey'],
];

export const OVERLAID_VARIABLES: readonly string[] = OVERLAYS.map(([variable]) => variable);

/** Which variable, if any, gives an option its value. */
export function overlayOf(path: string, env: Environment): string | null {
  const own = OVERLAYS.find(([, section, key]) => path === `${section}.${key}`)?.[0];
  return own !== undefined && env[own] ? own : null;
}

function typed(variable: string, value: string, faults: ConfigFault[]): unknown {
  if (variable !== 'PORT') return value;
  if (/^\d{1,5}$/.test(value)) return Number(value);
  faults.push({ path: 'PORT', message: 'must be a port number' });
  return undefined;
}

/**
 * Lays the environment over the file. `MCP_API_KEY` closes anonymous access: every anonymous rule then asks for that key,
 * and without any rule the key admits to the first agent.
 */
export function overlayEnvironment(raw: unknown, env: Environment, faults: ConfigFault[]): unknown {
  if (!isSection(raw)) return raw;
  const config: Section = { ...raw };
  for (const [variable, section, key] of OVERLAYS) {
    const value = env[variable];
    if (value === undefined || value === '') continue;
    const given = config[section] ?? {};
    if (!isSection(given)) continue;
    config[section] = { ...given, [key]: typed(variable, value, faults) };
  }
  const apiKey = env['MCP_API_KEY'];
  if (apiKey) config['auth'] = withApiKey(config, apiKey);
  return config;
}

function withApiKey(config: Section, apiKey: string): unknown {
  const { auth, agents } = config;
  if (auth === undefined) {
    const first = isSection(agents) ? Object.keys(agents)[0] : undefined;
    return [{ apiKey, agent: first ?? 'default' }];
  }
  if (!Array.isArray(auth)) return auth;
  return auth.map((rule: unknown) =>
    isSection(rule) && rule['anonymous'] === true ? { apiKey, agent: rule['agent'] } : rule,
  );
}
