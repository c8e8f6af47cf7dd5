import {
  type AgentDefinition,
  type AgentDefinitionOptions,
  canonicalClassName,
  compileAgentDefinition,
  isUserId,
  MASTER,
  toRoleName,
  withUndoneWrites,
} from '#core';
import type { AgentIdentity } from '#auth';
import type { UnknownName } from '#policy';
import { agentMeaningErrors } from './agent-options.js';
import type { ConfigIssue } from './config-error.js';
import type { AgentConfig } from './sections/agents.js';
import type { AuthRuleConfig } from './sections/auth.js';

type Filters = NonNullable<AgentDefinitionOptions['filters']>;

/** Row filters that the application's code gives to named agents, functions of the agent among them. */
export type DeclaredFilters = Readonly<Record<string, Filters>>;

export interface AgentDeclarations {
  /** Of agents that do not say how deep their sub-agents may go. */
  readonly recursionDepth: number;
  readonly filters: DeclaredFilters;
  /** Whether agents may take back writes that happened at once (`changes`). Default: they may not. */
  readonly undoesWrites?: boolean;
}

/** @param errors receives what is wrong */
export function compileAgents(
  agents: Readonly<Record<string, AgentConfig>>,
  { recursionDepth, filters: declared, undoesWrites = false }: AgentDeclarations,
  errors: ConfigIssue[],
): Map<string, AgentDefinition> {
  for (const name of Object.keys(declared)) {
    if (!Object.hasOwn(agents, name))
      errors.push({
        path: `agents.${name}`,
        message: 'filters are declared for it, but there is no such agent',
        related: ['agents.*'],
      });
  }
  const definitions = new Map<string, AgentDefinition>();
  for (const [name, agent] of Object.entries(agents)) {
    const { tenantId, llm: _llm, ...options } = withoutIdentity(agent);
    const filters = allFilters(name, options.filters ?? {}, declared[name] ?? {}, errors);
    const tenant = typeof tenantId === 'object' ? {} : { tenantId: tenantId ?? null };
    const definition = { recursionDepth, ...options, ...tenant, filters };
    const meant = agentMeaningErrors(definition, `agents.${name}`);
    errors.push(...meant);
    const compiled = compileAgentDefinition(name, meant.length === 0 ? definition : listNames(definition));
    definitions.set(name, undoesWrites ? withUndoneWrites(compiled) : compiled);
  }
  return definitions;
}

/** The names of an agent that cannot be served, so that unknown ones are reported with its other errors. */
function listNames({
  tools,
  classes,
  strictToolFilter,
  strictClassFilter,
}: AgentDefinitionOptions): AgentDefinitionOptions {
  return {
    ...(tools !== undefined && { tools }),
    ...(classes !== undefined && { classes }),
    ...(strictToolFilter !== undefined && { strictToolFilter }),
    ...(strictClassFilter !== undefined && { strictClassFilter }),
  };
}

/** The file's and the code's: a class stands in one of them, so that neither can loosen the other. */
function allFilters(agent: string, file: Filters, code: Filters, errors: ConfigIssue[]): Filters {
  const inFile = new Set(Object.keys(file).map(canonicalClassName));
  for (const className of Object.keys(code)) {
    if (inFile.has(canonicalClassName(className)))
      errors.push({ path: `agents.${agent}.filters.${className}`, message: 'is declared in code as well' });
  }
  return { ...file, ...code };
}

/** Names of nothing in the agents of a configuration: errors where names are strict, and warnings. */
export function nameErrors(names: readonly UnknownName[]): {
  readonly errors: readonly ConfigIssue[];
  readonly warnings: readonly ConfigIssue[];
} {
  const of = (strict: boolean) =>
    names
      .filter((name) => name.strict === strict)
      .map(({ agent, path, message, accepted }) => ({ path: `agents.${agent}.${path}`, message, accepted }));
  return { errors: of(true), warnings: of(false) };
}

/**
 * @param rules an agent that nothing but sessions leads to reads with them, unless it has an identity of its own
 * @param errors receives what is wrong
 */
export function readAgentIdentity(
  name: string,
  agent: AgentConfig,
  rules: readonly AuthRuleConfig[],
  errors: ConfigIssue[],
): AgentIdentity {
  const { identity, clientMode } = agent;
  const path = `agents.${name}.identity`;
  if (clientMode) {
    const session = typeof identity === 'object' && 'session' in identity;
    if (identity !== undefined && !session)
      errors.push({
        path,
        message: 'clientMode has no master key: only { session: caller } can be read with',
        related: ['parse.masterKey', `agents.${name}.clientMode`],
      });
    return 'callerSession';
  }
  if (identity === undefined) {
    const own = rules.filter((rule) => rule.agent === name);
    return own.length > 0 && own.every((rule) => 'parseSession' in rule) ? 'callerSession' : MASTER;
  }
  if (identity === 'master') return MASTER;
  if ('session' in identity) return 'callerSession';
  if ('claim' in identity) {
    const { claim, field } = identity;
    return { kind: 'claimedUser', claim, ...(field && { field }) };
  }
  const assertUser = (option: string, id: string) => {
    if (!isUserId(id)) errors.push({ path: `${path}.${option}`, message: 'must be the objectId of a user' });
  };
  if ('impersonate' in identity) {
    assertUser('impersonate', identity.impersonate);
    return { kind: 'impersonate', userId: identity.impersonate, mint: identity.mint ?? false };
  }
  if ('user' in identity) {
    assertUser('user', identity.user);
    return { kind: 'aclUser', userId: identity.user };
  }
  const role = toRoleName(identity.role);
  if (role === '') errors.push({ path: `${path}.role`, message: 'must be the name of a role' });
  return { kind: 'aclRole', role };
}

/** The options of an agent without its identity, and with its label. */
function withoutIdentity({ identity, ...options }: AgentConfig) {
  const label = typeof identity === 'object' && 'label' in identity ? identity.label : undefined;
  return label === undefined ? options : { ...options, impersonationLabel: label };
}

function readsToken(agent: AgentConfig | undefined, identity: AgentIdentity | undefined): boolean {
  const { tenantId } = agent ?? {};
  const byClaim = typeof tenantId === 'object' && tenantId !== null;
  return byClaim || (typeof identity === 'object' && identity.kind === 'claimedUser');
}

/** A rule and the identity of its agent must be able to meet in one caller. */
export function identityErrors(
  rules: readonly AuthRuleConfig[],
  agents: Readonly<Record<string, AgentConfig>>,
  identities: ReadonlyMap<string, AgentIdentity>,
): ConfigIssue[] {
  return rules.flatMap((rule, index): ConfigIssue[] => {
    const path = `auth.${index}.agent`;
    const own = ['identity', 'clientMode', 'tenantId'];
    const related = ['parse.masterKey', ...own.map((option) => `agents.${rule.agent}.${option}`)];
    if ('anonymous' in rule && identities.get(rule.agent) === 'callerSession') {
      return [
        {
          path,
          message: `'${rule.agent}' reads with a session, which anonymous callers do not show`,
          related,
        },
      ];
    }
    if (!('oauth' in rule) && readsToken(agents[rule.agent], identities.get(rule.agent))) {
      return [
        { path, message: `'${rule.agent}' goes by claims of a token, so only oauth can lead to it`, related },
      ];
    }
    const agent = agents[rule.agent];
    if (
      'parseSession' in rule &&
      agent?.identity !== undefined &&
      identities.get(rule.agent) !== 'callerSession'
    ) {
      return [
        {
          path,
          message: `'${rule.agent}' has an identity of its own, so no session can be its identity`,
          related,
        },
      ];
    }
    return [];
  });
}

/** What is wrong with the rule that stands in for a missing section is said of the section. */
export function ofNoRules(errors: readonly ConfigIssue[]): ConfigIssue[] {
  return errors.map(({ message, ...error }) => ({
    ...error,
    path: 'auth',
    message: `is missing, so every caller gets the first agent: ${message}`,
  }));
}
