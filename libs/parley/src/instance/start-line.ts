import {
  computeDigest,
  type Environment,
  findOverlays,
  type LoadedConfig,
  type ParleyConfig,
  readServers,
} from '#config';
import { LogMessage } from '#audit';
import type { EnvironmentGates } from '#policy';
import { productVersion } from '../package-files.js';
import type { ReadableAgain } from './configuration-changes.js';

interface Started {
  readonly loaded: LoadedConfig & ReadableAgain;
  readonly gates: EnvironmentGates;
  readonly environment: Environment;
  /** States of the audit sinks by name. */
  readonly sinks: ReadonlyMap<string, string>;
  readonly url: string;
}

/** What a service says of itself at its start. Addresses are hosts, without users and passwords. */
export function describeStart({ loaded, gates, environment, sinks, url }: Started): LogMessage {
  const { config, policy, agents, file } = loaded;
  const { serverUrl } = config.parse;
  return new LogMessage('started', {
    version: productVersion(),
    node: process.versions.node,
    url,
    configuration: file ?? 'defaults',
    configuration_digest: file ? computeDigest(file) : undefined,
    // Variables win over the file, and those of an image are easily forgotten.
    environment: findOverlays(environment),
    policy_version: policy.version,
    database: describeDatabase(config),
    parse: serverUrl === null ? undefined : new URL(serverUrl).host,
    redis: describeRedis(config),
    agents: [...agents.values()].map(({ name, permissions }) => `${name} (${permissions})`),
    sinks: [...sinks].map(([name, state]) => `${name} (${state})`),
    gates: Object.entries(gates).flatMap(([name, isOpen]) => (isOpen ? [name] : [])),
  });
}

function describeDatabase({ database: { uri, name } }: ParleyConfig): string {
  if (uri === null) return 'none';
  return uri === 'embedded' ? uri : `${readServers(uri).join(',')}/${name}`;
}

function describeRedis({ redis: { url, sentinels, cluster } }: ParleyConfig): string {
  if (url !== null) return new URL(url).host;
  return (sentinels ?? cluster)?.join(',') ?? 'none';
}
