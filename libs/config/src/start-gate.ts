import { isTruthy } from '#policy';
import { ConfigError } from './config-faults.js';
import type { ParleyConfig } from './config.js';
import type { Environment } from './read-config-file.js';

const LOOPBACK_HOSTS = new Set(['127.0.0.1', '::1', 'localhost']);

export function isLoopbackHost(host: string): boolean {
  return LOOPBACK_HOSTS.has(host);
}

/** Nobody switched the server off. @throws ConfigError */
export function assertEnabled(env: Environment): void {
  const enabled = env['PARSE_MCP_ENABLED'];
  if (enabled !== undefined && enabled !== '' && !isTruthy(enabled)) {
    throw new ConfigError('environment', [
      { path: 'PARSE_MCP_ENABLED', message: `is '${enabled}': the server is switched off` },
    ]);
  }
}

/**
 * What must hold before a port is opened: nobody switched the server off, and an address that others can reach asks for
 * credentials (docs/configuration.md#binding).
 */
export function assertMayStart(config: ParleyConfig, env: Environment): void {
  assertEnabled(env);
  const { host } = config.server;
  if (isLoopbackHost(host)) return;
  if (config.auth.length === 0 || config.auth.some((rule) => 'anonymous' in rule)) {
    throw new ConfigError('server.host', [
      {
        path: 'server.host',
        message: `non-loopback address '${host}' needs authentication: set MCP_API_KEY or give auth rules without anonymous`,
      },
    ]);
  }
}
