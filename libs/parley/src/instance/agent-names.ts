import { type INestApplicationContext, Logger } from '@nestjs/common';
import type { AgentDefinition } from '#core';
import { connectionProblem, type MongoConnection } from '#data-mongo';
import { FilterNames } from '#dispatcher';
import { listsNoClass, NO_CLASS_LISTED, type Policy } from '#policy';
import {
  AgentOptionsError,
  ConfigError,
  type ConfigIssue,
  ConfigVersions,
  type DatabaseConfig,
  describeIssue,
  type LoadedConfig,
  nameErrors,
} from '#config';
import type { LoadedService } from './plugins.js';

/**
 * Names in the limits of agents that do not resolve: a warning each, or errors that stop the start where names are
 * strict. Rules and row filters on fields that their class does not have are always errors, because the data they
 * should protect is unknown.
 * @param locate says where the file has what a warning is about
 * @throws ConfigError listing every strict one at once
 */
export async function checkFilterNames(
  { agents, policy }: Pick<LoadedConfig, 'agents' | 'policy'>,
  names: FilterNames,
  logger: Pick<Logger, 'warn'>,
  locate: LoadedService['locate'] = (issues) => issues,
): Promise<void> {
  const { errors, warnings } = nameErrors(await names.unknownIn(agents.values(), policy));
  for (const issue of locate(warnings)) logger.warn(describeIssue(issue));
  const misfits = (await names.misfits(agents.values(), policy)).map(({ path, message }) => ({
    path,
    message,
  }));
  if (errors.length + misfits.length > 0) throw new ConfigError('agents', [...errors, ...misfits]);
}

/**
 * A database that cannot be used: an operator must know why, and callers must not. One without classes is most likely not the
 * one that was meant: its name may be missing in the URI. The embedded one starts empty. Never rejects.
 */
export async function warnOfDatabase(
  { config, policy }: { config: { database: Pick<DatabaseConfig, 'uri' | 'name'> }; policy: Policy },
  names: Pick<FilterNames, 'isEmpty'>,
  logger: Pick<Logger, 'warn'>,
): Promise<void> {
  const { uri, name } = config.database;
  if (uri === null || uri === 'embedded') return;
  try {
    // Under a policy that lists no class there is none: `warnOfNoClasses` says so.
    if (!(await names.isEmpty()) || listsNoClass(policy)) return;
    const none =
      policy.switches.unlistedClasses === 'refuse' ? 'none of the classes of policy.classes' : 'no classes';
    logger.warn(
      `database.name: the database '${name}' has ${none}; write the name of the one that holds your data, and list its collections under policy.classes where Parse does not store them`,
    );
  } catch (error) {
    const problem = connectionProblem(error);
    if (problem) logger.warn(`the database cannot be used: ${problem.found}; ${problem.remedy}`);
  }
}

/** A policy under which agents reach no data: most likely nobody has written it yet. */
export function warnOfNoClasses(policy: Policy, logger: Pick<Logger, 'warn'>): void {
  if (listsNoClass(policy)) logger.warn(`policy.classes ${NO_CLASS_LISTED}`);
}

/** Reads that stay the driver's although the configuration wants fast ones. */
export function warnOfFastReads(
  connection: Pick<MongoConnection, 'fastReadsProblem'> | null,
  logger: Pick<Logger, 'warn'>,
): void {
  const problem = connection?.fastReadsProblem ?? null;
  if (problem !== null) logger.warn(`database.fastReads: every read is the driver's, because ${problem}`);
}

/**
 * The same check for limits from code, with the classes that the database returned last.
 * @throws AgentOptionsError listing every strict one at once
 */
export function assertNamesOf(definition: AgentDefinition, context: INestApplicationContext): void {
  const unknown = context.get(FilterNames).unknownNow(definition, context.get(ConfigVersions).current.policy);
  const at = ({ path, message }: { path: string; message: string }): ConfigIssue => ({
    path: `agent.${path}`,
    message,
  });
  for (const { path, message } of unknown.filter(({ strict }) => !strict).map(at))
    new Logger('Parley').warn(`agentFor: ${path}: ${message}`);
  const errors = unknown.filter(({ strict }) => strict).map(at);
  if (errors.length > 0) throw new AgentOptionsError('agentFor', errors);
}
