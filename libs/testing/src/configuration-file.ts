import { resolve } from 'node:path';
import { type LoadedConfig, loadWithPlugins, type ParleyModuleOptions } from '@parley/server';
import type { TestingOptions } from './testing-options.js';

/** Of a file: what a test is about. */
export type ConfigurationRead = Pick<
  TestingOptions,
  'policy' | 'agents' | 'server' | 'approvals' | 'tasks' | 'exports' | 'seed'
>;

/**
 * What a configuration file says of policy and agents, and of what is decided by them.
 * @throws ConfigError listing every fault of the file. @throws TypeError for plugins that nobody listed
 */
export async function readConfiguration({
  config,
  env = {},
  pluginsAreListed = false,
}: TestingOptions): Promise<ConfigurationRead> {
  if (config === undefined) return {};
  const { PARLEY_SEED: _, ...given } = env;
  const loaded = await loadWithPlugins({ ...given, PARLEY_CONFIG: resolve(config) });
  if (loaded.plugins.length > 0 && !pluginsAreListed)
    throw new TypeError(
      `${config} has plugins: list their classes in tools, and say so with pluginsAreListed: true`,
    );
  const { policy, server, approvals, tasks, exports, database } = loaded.config;
  return {
    policy,
    agents: agentsOf(loaded),
    server: { approvalTimeout: server.approvalTimeout },
    // Nobody outside is told.
    approvals: { ...approvals, webhook: null },
    tasks,
    exports,
    ...(database.seed !== null && { seed: database.seed }),
  };
}

/** Whom an agent reads as may follow from the auth rules, which are left out: it is said here, lest it be the master key. */
function agentsOf({ config, identities }: LoadedConfig): NonNullable<ParleyModuleOptions['agents']> {
  return Object.fromEntries(
    Object.entries(config.agents).map(([name, agent]) => {
      const byCaller = identities.get(name) === 'callerSession' && agent.identity === undefined;
      return [name, byCaller ? { ...agent, identity: { session: 'caller' } } : agent];
    }),
  );
}
