import type { Logger } from '@nestjs/common';
import type { FilterNames } from '#dispatcher';
import { ConfigError, type ConfigFault, type LoadedConfig } from '#config';

/**
 * Names in the agents' filters that nothing has: a warning each, or faults that stop the start where names are strict.
 * @throws ConfigError listing every strict one at once
 */
export async function checkFilterNames(
  { agents, policy }: Pick<LoadedConfig, 'agents' | 'policy'>,
  names: FilterNames,
  logger: Pick<Logger, 'warn'>,
): Promise<void> {
  const faults: ConfigFault[] = [];
  for (const { agent, option, name, strict } of await names.unknownIn(agents.values(), policy)) {
    const fault = { path: `agents.${agent}.${option}`, message: `nothing is called '${name}'` };
    if (strict) faults.push(fault);
    else logger.warn(`${fault.path}: ${fault.message}`);
  }
  if (faults.length > 0) throw new ConfigError('agents', faults);
}
