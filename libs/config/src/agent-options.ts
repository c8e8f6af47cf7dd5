import { type AgentDefinitionOptions, compileAgentDefinition, isJsonObject } from '#core';
import { constraintIssue } from '#policy';
import type { ConfigIssue } from './config-error.js';
import { readSchema } from './schema/class-schema.js';
import { readablePart } from './schema/readable-part.js';
import type { SchemaNode } from '#schema';
import { AgentEntry } from './sections/agents.js';

/** What code gave to make an agent of cannot be meant. No agent was made. */
export class AgentOptionsError extends TypeError {
  /** Stays the same where two copies of the package meet. */
  override readonly name = 'AgentOptionsError';
  constructor(
    /** What was called, such as `agentFor`. */
    readonly source: string,
    /** All of them, each with the path of its option. */
    readonly errors: readonly ConfigIssue[],
  ) {
    super(
      `${source}: ${errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ')}`,
    );
  }
}

const IDENTITY_VARIANTS: readonly SchemaNode[] = (['user', 'role', 'session'] as const).map((name) => ({
  type: 'object',
  additionalProperties: false,
  required: [name],
  properties: { [name]: { type: 'string', minLength: 1 } },
}));

/** As whom an agent that code makes reads: less than the master key. */
const CHOSEN_IDENTITY: SchemaNode = { anyOf: IDENTITY_VARIANTS };

/** The same for a sub-agent, also in the form that `Agent.identity` has. That it does not widen is checked against the database. */
const DELEGATED_IDENTITY: SchemaNode = {
  anyOf: [
    { const: 'master' },
    ...IDENTITY_VARIANTS,
    {
      type: 'object',
      required: ['kind'],
      additionalProperties: false,
      properties: {
        kind: { enum: ['master', 'sessionToken', 'aclUser', 'aclRole'] },
        token: { type: 'string' },
        userId: { type: 'string', minLength: 1 },
        role: { type: 'string', minLength: 1 },
      },
    },
  ],
};

const beside = (where: string) => `say it beside the options, as ${where}`;

/** Identities are options of agents in a file; in code they have one place. */
function describeMisplacedIdentities(place: (identity: string) => string): Record<string, string> {
  return {
    identity: place("identity: { user: 'ID' }"),
    aclUser: place("identity: { user: 'ID' }"),
    aclRole: place("identity: { role: 'NAME' }"),
    sessionToken: place("identity: { session: 'TOKEN' }"),
    impersonateUser: 'use Impersonation.impersonate',
    session: place("identity: { session: 'TOKEN' }"),
    user: place("identity: { user: 'ID' }"),
    role: place("identity: { role: 'NAME' }"),
  };
}

/** Options of agents in a file that code gives in the same form. */
function fileOptions<const Name extends keyof AgentEntry>(
  ...names: readonly Name[]
): Record<Name, SchemaNode> {
  const { properties = {} } = readSchema(AgentEntry);
  return Object.fromEntries(names.map((name) => [name, properties[name] as SchemaNode])) as Record<
    Name,
    SchemaNode
  >;
}

/** In code a class of the database may be a class of code. */
const CLASS_LIST: SchemaNode = {
  type: 'array',
  items: {
    anyOf: [
      { type: 'string', minLength: 1 },
      { type: 'function', description: 'a class with @ParseClass, or a model' },
    ],
  },
};

const CLASS_FILTER: SchemaNode = {
  anyOf: [
    { type: 'null' },
    CLASS_LIST,
    {
      type: 'object',
      additionalProperties: false,
      properties: {
        only: { anyOf: [{ type: 'null' }, CLASS_LIST] },
        except: { anyOf: [{ type: 'null' }, CLASS_LIST] },
      },
    },
  ],
};

/** Options that both a root and a sub-agent take from code. */
const CODE_OPTIONS: Readonly<Record<string, SchemaNode>> = {
  ...fileOptions('permissions', 'tools', 'methods'),
  classes: CLASS_FILTER,
  filters: {
    type: 'object',
    additionalProperties: {
      anyOf: [{ type: 'object', description: 'a constraint object' }, { type: 'function' }],
    },
  },
  tenantId: { type: ['string', 'number', 'null'], description: 'a text, a number or null' },
  ...fileOptions(
    'allowMutations',
    'writes',
    'clientMode',
    'masterAtlas',
    'maxResultBytes',
    'rateLimit',
    'rateWindow',
  ),
  rateLimiter: { type: 'object', description: 'an object with a check method' },
  ...fileOptions('recursionDepth'),
  impersonationLabel: { type: ['string', 'null'] },
  ...fileOptions('strictToolFilter', 'strictClassFilter'),
};

const BUDGET = fileOptions('budget');

const LIMITS: SchemaNode = {
  type: 'object',
  additionalProperties: false,
  properties: { ...CODE_OPTIONS, ...BUDGET },
  elsewhere: {
    ...describeMisplacedIdentities((identity) => beside(`agentFor({ agent, ${identity} })`)),
    principal: beside('agentFor({ agent, principal })'),
    agent: 'a named agent is agentFor({ agent: NAME })',
  },
};

const SUB_AGENT: SchemaNode = {
  type: 'object',
  additionalProperties: false,
  properties: { name: { type: 'string', minLength: 1 }, ...CODE_OPTIONS, identity: DELEGATED_IDENTITY },
  elsewhere: {
    ...describeMisplacedIdentities((identity) => `write ${identity}`),
    budget: 'a sub-agent uses that of the agent at its root',
    agent: 'a sub-agent is made of the agent that delegates',
    principal: 'a sub-agent has that of its parent',
  },
};

const CHOICE: SchemaNode = {
  type: 'object',
  additionalProperties: false,
  required: ['agent'],
  properties: {
    agent: { type: 'string', minLength: 1, description: 'the name of an agent' },
    principal: { description: 'a text' },
    identity: {
      ...CHOSEN_IDENTITY,
      description:
        '{ user }, { role } or { session }, never the master key; left out, that of the agent holds',
    },
    tenantId: { description: 'a text or a number' },
    claims: { type: 'object' },
    correlationId: { type: 'string' },
  },
  elsewhere: Object.fromEntries(
    Object.keys({ ...CODE_OPTIONS, ...BUDGET, llm: 0 })
      .filter((name) => name !== 'tenantId')
      .map((name) => [
        name,
        'limits are those of the named agent; code gives its own as agentFor({ agent: { … } })',
      ]),
  ),
};

const CHOICE_OF_LIMITS: SchemaNode = {
  ...CHOICE,
  properties: { ...CHOICE.properties, agent: LIMITS },
  elsewhere: Object.fromEntries(
    Object.keys({ ...CODE_OPTIONS, ...BUDGET })
      .filter((name) => name !== 'tenantId')
      .map((name) => [name, `it is one of the limits: agentFor({ agent: { ${name}: … } })`]),
  ),
};

/** Errors in the options of an agent that its schema does not express, also of a file. */
export function agentMeaningErrors(options: AgentDefinitionOptions, path: string): ConfigIssue[] {
  const at = (option: string) => (path === '' ? option : `${path}.${option}`);
  const errors: ConfigIssue[] = [];
  for (const [className, entry] of Object.entries(options.filters ?? {})) {
    const message = typeof entry === 'function' ? null : constraintIssue(entry, className);
    if (message) errors.push({ path: at(`filters.${className}`), message });
  }
  if (errors.length > 0) return errors;
  try {
    compileAgentDefinition('checked', options);
    return [];
  } catch (error) {
    return [placeIssue((error as Error).message, path)];
  }
}

/** Errors of compiling name their option first. */
function placeIssue(message: string, path: string): ConfigIssue {
  const [, option, rest] = /^([A-Za-z]+(?:\.[A-Za-z_]+)*): (.*)$/s.exec(message) ?? [];
  if (option === undefined || rest === undefined) return { path, message };
  return { path: path === '' ? option : `${path}.${option}`, message: rest };
}

function assertFits(source: string, schema: SchemaNode, given: unknown): void {
  const { errors } = readablePart(schema, given);
  if (errors.length > 0) throw new AgentOptionsError(source, errors);
}

function assertMeant(source: string, options: AgentDefinitionOptions, path: string): void {
  const errors = agentMeaningErrors(options, path);
  if (errors.length > 0) throw new AgentOptionsError(source, errors);
}

/** Who a request runs as, by the name of an agent. @throws AgentOptionsError listing every error */
export function assertChoice(source: string, choice: unknown): void {
  assertFits(source, CHOICE, choice);
}

/** Within which limits code calls, and as whom. @throws AgentOptionsError listing every error */
export function assertChoiceOfLimits(source: string, choice: unknown): void {
  assertFits(source, CHOICE_OF_LIMITS, choice);
  const { agent } = choice as { readonly agent: AgentDefinitionOptions };
  assertMeant(source, agent, 'agent');
}

/** The options of a sub-agent. @throws AgentOptionsError listing every error */
export function assertSubAgentOptions(source: string, options: unknown): void {
  assertFits(source, SUB_AGENT, options);
  if (!isJsonObject(options)) return;
  const { name: _name, identity: _identity, ...limits } = options;
  assertMeant(source, limits as AgentDefinitionOptions, '');
}
