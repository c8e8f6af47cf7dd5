import { existsSync } from 'node:fs';
import { isTruthy } from '#policy';
import type { ConfigFault } from './config-faults.js';
import type { ParleyConfig } from './config.js';
import type { Environment } from './read-config-file.js';

const LOOPBACK_HOSTS = new Set(['127.0.0.1', '::1', 'localhost']);

export function isLoopbackHost(host: string): boolean {
  return LOOPBACK_HOSTS.has(host);
}

/** What serves: a listener that others may reach, or a pipe of one client. */
export type StartKind = 'http' | 'stdio';

/**
 * What must hold before anything is served: nobody switched the server off, and an address that others can reach asks for
 * credentials (docs/configuration.md#binding).
 */
export function startFaults(config: ParleyConfig, env: Environment, kind: StartKind): ConfigFault[] {
  const faults: ConfigFault[] = [];
  const enabled = env['PARSE_MCP_ENABLED'];
  if (enabled !== undefined && enabled !== '' && !isTruthy(enabled))
    faults.push({ path: 'PARSE_MCP_ENABLED', message: `is '${enabled}': the server is switched off` });
  const { uri, seed } = config.database;
  if (uri === 'embedded' && seed !== null && !existsSync(seed))
    faults.push({ path: 'database.seed', message: `the seed file ${seed} cannot be read` });
  const { host } = config.server;
  if (kind === 'stdio' || isLoopbackHost(host)) return faults;
  const anonymous = config.auth.some((rule) => 'anonymous' in rule);
  if (config.auth.length === 0 || anonymous)
    faults.push({
      path: 'server.host',
      message: `non-loopback address '${host}' needs authentication: set MCP_API_KEY or give auth rules without anonymous`,
      related: [anonymous ? 'auth' : 'auth.*'],
    });
  return faults;
}
