import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import { Agent, type ClientLink, isTier } from '#core';
import { createInnerCredentials, Authenticator } from '#auth';
import { type AuthRuleConfig, type Environment, findLlm, type ParleyConfig } from '#config';
import { AgentIntrospection, type DescribedAgent, Kernel } from '#dispatcher';
import { type LoadedService, ParleyInstance, readModelSettings } from '#parley/instance';
import { Conversation, KernelTools, openModel } from '#chat';
import { ServiceLogger } from '../logging/service-logger.js';
import { chooseAgent, UsageError } from './command-options.js';

/** The service in this process, for one of its agents. */
export interface OpenAgent {
  readonly name: string;
  readonly permissions: string;
  readonly tools: KernelTools;
  describe(): Promise<DescribedAgent>;
  close(): Promise<void>;
}

export interface ChosenAgent {
  /** A name of the configuration; optional where there is only one agent. */
  readonly agent: string | undefined;
  /** A terminal for client requests of calls. Default: none. */
  readonly person?: ClientLink;
}

/**
 * Composes the service over the configured database, with the gates, limits and records of any other call. A user who
 * can read the configuration needs no key; an agent with the rights of a session needs one (PARSE_SESSION_TOKEN).
 * @throws UsageError for an agent that does not exist, or lacks its session
 */
export async function openAgent(
  loaded: LoadedService,
  env: Environment,
  { agent, person }: ChosenAgent,
): Promise<OpenAgent> {
  const [name] = chooseAgent(loaded.agents, agent);
  const agents = withTier(loaded.agents, name, env);
  const { rule, headers } = createAdmission(name, loaded, env);
  const logger = new ServiceLogger({ logLevels: ['error', 'fatal'] });
  Logger.overrideLogger(logger);
  const instance = await ParleyInstance.open(
    {
      loaded: { ...loaded, agents, config: { ...loaded.config, auth: [rule] } },
      environment: env,
      serves: false,
      queue: 'process',
      plugins: loaded.plugins,
    },
    (module) => NestFactory.createApplicationContext(module, { logger }),
  );
  const { app } = instance;
  try {
    await instance.begin();
    const authenticator = app.get(Authenticator);
    const admit = async () => atTerminal(await authenticator.authenticate(createInnerCredentials(headers)));
    const first = await admit();
    return {
      name,
      permissions: first.permissions,
      tools: new KernelTools({
        kernel: app.get(Kernel),
        agent: admit,
        correlationId: randomUUID(),
        ...(person && { person }),
      }),
      describe: async () => app.get(AgentIntrospection).describe({ agent: await admit() }),
      close: () => instance.close(),
    };
  } catch (error) {
    await instance.abandon();
    throw error;
  }
}

/** The terminal may choose another tier than the configuration; the environment gates of its tools stay. @throws UsageError */
function withTier(agents: LoadedService['agents'], name: string, env: Environment): LoadedService['agents'] {
  const permissions = env['MCP_AGENT_PERMISSIONS'];
  const definition = agents.get(name);
  if (!permissions || !definition) return agents;
  if (!isTier(permissions)) throw new UsageError('MCP_AGENT_PERMISSIONS: expected readonly, write or admin');
  return new Map(agents).set(name, Object.freeze({ ...definition, permissions }));
}

interface Admission {
  /** The only rule here, instead of those for remote callers. */
  readonly rule: AuthRuleConfig;
  readonly headers: Record<string, string>;
}

function createAdmission(agent: string, { identities }: LoadedService, env: Environment): Admission {
  if (identities.get(agent) !== 'callerSession') return { rule: { anonymous: true, agent }, headers: {} };
  const session = env['PARSE_SESSION_TOKEN'];
  if (!session)
    throw new UsageError(`'${agent}' reads with the rights of a session: set PARSE_SESSION_TOKEN`);
  return { rule: { parseSession: true, agent }, headers: { 'x-parse-session-token': session } };
}

/** Audit records contain the account of the terminal where no session names a user. */
function atTerminal(admitted: Agent): Agent {
  const { definition, identity, tenantId, principal, impersonatedUserId } = admitted;
  if (!principal.startsWith('anonymous:')) return admitted;
  return new Agent({
    definition,
    identity,
    tenantId,
    principal: `terminal:${accountName()}:${definition.name}`,
    ...(impersonatedUserId !== null && { impersonatedUserId }),
  });
}

/** Accounts without an entry in the system's list, as in containers, have only a number. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}

export type OpenConversation = (agent: OpenAgent) => Conversation;

/**
 * @param agent whose settings apply; undefined: the only agent
 * @returns a function that opens a conversation, so that settings are checked before any resource is opened
 * @throws ModelSettingsError
 */
export function prepareConversation(
  config: ParleyConfig,
  agent: string | undefined,
  env: Environment,
  warn: (line: string) => void,
): OpenConversation {
  const [only = ''] = Object.keys(config.agents);
  const settings = readModelSettings(findLlm(config, agent ?? only), env);
  const model = openModel(settings);
  if (settings.allowedEndpoints === null)
    warn('[SECURITY] llm.allowedEndpoints is not set: what agents read may be sent to any endpoint');
  return ({ tools, permissions }) => new Conversation(model, tools, { ...settings, permissions, warn });
}
