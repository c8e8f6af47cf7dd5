import { Inject, Injectable } from '@nestjs/common';
import { createHash } from 'node:crypto';
import {
  type Agent,
  authType,
  type McpRequest,
  type RequestTransport,
  canonicalClassName,
  isClassName,
  type NameFilter,
  type Refusal,
} from '#core';
import { listFilteredFields } from '#audit';
import { GovernedRecordsSource } from '#data';
import {
  type AgentScope,
  type ClassOperation,
  describeMasks,
  envGate,
  type EnvironmentGates,
  isRefusal,
  isTenantRefusal,
  methodGate,
  Policies,
  tenantBinding,
  toolGate,
} from '#policy';
import { CallableMethods, type DeclaredMethods, PermittedTools, ToolEnvironment, ToolRegistry } from '#tools';
import type { JsonSchema } from '#schema';
import { CONVENTIONS_VERSION } from '../prompts/prompt.js';

/** An agent as its operator sees it. A member that does not apply is null. */
export interface DescribedAgent {
  /** The id of this agent alone. */
  readonly agent_id: string;
  /** 0 for the agent of a request, one more for each sub-agent below it. */
  readonly agent_depth: number;
  /** Its tier. */
  readonly permissions: string;
  /** How the agent authenticates; a token appears as a fingerprint. */
  readonly auth: Readonly<Record<string, string>>;
  /** Its tenant. */
  readonly tenant_id: string | number | null;
  /** The classes that the agent is limited to. */
  readonly classes: ListedFilter | null;
  /** `effective`: the tools that the agent may call and that can work for it, as `tools/list` returns them to it. */
  readonly tools: { readonly effective: readonly string[] } & ListedFilter;
  /** The declared methods that the agent is limited to. */
  readonly methods: ListedFilter | null;
  /** Maps a class to the names of its constrained fields. */
  readonly filters: Readonly<Record<string, readonly string[]>> | null;
  /** Classes that the policy hides from it. */
  readonly hidden_classes: readonly string[];
  /** The classes that `classes` or `filters` name. */
  readonly per_class: Readonly<Record<string, Omit<DescribedClass, 'class_name'>>>;
  /** Whether unknown names in its filters are errors. */
  readonly strict_modes: { readonly tool_filter: boolean; readonly class_filter: boolean };
  /** The id that links the audit records of this request. */
  readonly correlation_id: string | null;
  /** The version of the conventions that the agent receives. */
  readonly prompt: { readonly version: string };
}

/**
 * Describes for operators what an agent may do and why not. The functions that decide calls give the answers. Never
 * show them to an agent.
 */
@Injectable()
export class AgentIntrospection {
  private readonly parts: PermitParts;

  /** @internal Made by the module. */
  constructor(
    @Inject(Policies) private readonly policies: Pick<Policies, 'of'>,
    private readonly tools: PermittedTools,
    registry: ToolRegistry,
    methods: CallableMethods,
    @Inject(ToolEnvironment) gates: EnvironmentGates,
    private readonly records: GovernedRecordsSource,
  ) {
    this.parts = { registry, methods, gates, records };
  }

  /** Every limit of the agent of a request. @throws Refused when the database does not answer */
  async describe(
    context: Pick<McpRequest, 'agent'> & Pick<RequestTransport, 'correlationId'>,
  ): Promise<DescribedAgent> {
    const { agent } = context;
    const { policies, tools, records } = this;
    const { definition } = agent;
    const scope = await records.findScope(agent);
    const filters = listFilteredFields(definition);
    const strict = policies.of(agent).switches;
    return {
      agent_id: agent.agentId,
      agent_depth: agent.depth,
      permissions: agent.permissions,
      auth: describeAuth(agent),
      tenant_id: agent.tenantId,
      classes: describeFilter(definition.classes),
      tools: {
        ...(describeFilter(definition.tools) ?? { only: null, except: null }),
        effective: (await tools.listTools({ agent })).map(({ name }) => name),
      },
      methods: describeFilter(definition.methods),
      filters,
      hidden_classes: this.listHidden(agent, scope),
      per_class: this.perClass(agent, scope, Object.keys(filters ?? {})),
      strict_modes: {
        tool_filter: definition.strictToolFilter ?? strict.strictToolFilter,
        class_filter: definition.strictClassFilter ?? strict.strictClassFilter,
      },
      correlation_id: context.correlationId ?? null,
      prompt: { version: CONVENTIONS_VERSION },
    };
  }

  /** `describe` as indented JSON. */
  async describeAsText(
    context: Pick<McpRequest, 'agent'> & Pick<RequestTransport, 'correlationId'>,
  ): Promise<string> {
    return JSON.stringify(await this.describe(context), null, 2);
  }

  /**
   * Describes one class as the agent sees it.
   * @throws TypeError when the name is not a valid class name
   * @throws Refused when the database does not answer
   */
  async describeFor(agent: Agent, className: string): Promise<DescribedClass> {
    if (!isClassName(className)) throw new TypeError('describeFor: expected the name of a class');
    const scope = await this.records.findScope(agent);
    return describeClass({ ...this.parts, agent, scope }, canonicalClassName(className));
  }

  /**
   * The constraint that every read of a class carries for the agent, with values; null: none. A filter that is a
   * function is called. Descriptions contain field names only.
   * @throws TypeError when the name is not a valid class name
   * @throws Refused when the database does not answer, or a function returns no usable constraint
   */
  async filterFor(agent: Agent, className: string): Promise<Readonly<Record<string, unknown>> | null> {
    if (!isClassName(className)) throw new TypeError('filterFor: expected the name of a class');
    const scope = await this.records.findScope(agent);
    return scope.agentFilter(agent, canonicalClassName(className));
  }

  /**
   * Whether a call would pass the gates. Approval and the rate limit are not checked, because a check would consume
   * them.
   */
  wouldPermit(agent: Agent, tool: string, question: PermitQuestion = {}): Promise<PermitAnswer> {
    return wouldPermit(this.parts, agent, tool, question);
  }

  /** The gates of the environment: which kinds of writing tools are open at all. */
  get gates(): EnvironmentGates {
    return { ...this.parts.gates };
  }

  /**
   * The tools that the agent may call, as `tools/list` returns them to it, in the form in which OpenAI and most servers of
   * models take functions.
   * @param setting `category`: only tools of it; default: all
   */
  async listFunctions(
    agent: Agent,
    { category }: { readonly category?: string } = {},
  ): Promise<readonly ModelFunction[]> {
    const listed = await this.tools.listTools({ agent });
    return listed
      .filter((tool) => category === undefined || tool.category === category)
      .map(({ name, description, inputSchema }) => ({
        type: 'function',
        function: { name, description, parameters: inputSchema },
      }));
  }

  private listHidden(agent: Agent, scope: AgentScope): string[] {
    const names = new Set([...scope.schemas.classNames(), ...scope.policy.classes.keys()]);
    return [...names].filter((name) => scope.hides(agent, name)).sort();
  }

  private perClass(
    agent: Agent,
    scope: AgentScope,
    filtered: readonly string[],
  ): DescribedAgent['per_class'] {
    const { only, except } = agent.definition.classes;
    const named = new Set([
      ...(only ?? []),
      ...(except ?? []),
      ...filtered.filter((name) => name !== 'default'),
    ]);
    return Object.fromEntries(
      [...named].sort().map((name) => {
        const { class_name, ...described } = describeClass({ ...this.parts, agent, scope }, name);
        return [class_name, described];
      }),
    );
  }
}

/** A tool as OpenAI and most servers of models take it. */
export interface ModelFunction {
  /** Always `function`. */
  readonly type: 'function';
  /** The tool. */
  readonly function: {
    readonly name: string;
    readonly description: string;
    /** The JSON Schema of its arguments. */
    readonly parameters: JsonSchema;
  };
}

interface ListedFilter {
  readonly only: readonly string[] | null;
  readonly except: readonly string[] | null;
}

/** A class as one agent sees it. A member that does not apply is null. */
export interface DescribedClass {
  /** The class name in Parse. */
  readonly class_name: string;
  /** Whether the agent may use the class, or the check that refuses it. */
  readonly accessible: 'permitted' | 'hidden' | 'class_filter_excluded' | 'misconfigured';
  /** The allowlist of its fields. */
  readonly agent_fields: readonly string[] | null;
  /** The canonical filter of the class. */
  readonly agent_canonical_filter: Readonly<Record<string, unknown>> | null;
  /** Names of the constrained fields, never their values. */
  readonly per_agent_filter: readonly string[] | null;
  /** The tenant that every read carries. */
  readonly tenant_scope: { readonly field: string; readonly value: string | number } | null;
  /** Fields that are left out of included rows. */
  readonly large_fields: readonly string[] | null;
  /** Maps a path to the value that this agent receives instead. Absent: nothing is masked. */
  readonly masked_fields?: Readonly<Record<string, string>>;
  /** Declared methods that the agent may call. */
  readonly agent_methods: readonly string[] | null;
}

function describeFilter({ only, except }: NameFilter): ListedFilter | null {
  if (!only && !except) return null;
  return { only: only && [...only].sort(), except: except && [...except].sort() };
}

/** How an agent authenticates, without the credential itself. */
function describeAuth({ identity }: Agent): Readonly<Record<string, string>> {
  const mode = authType(identity);
  switch (identity.kind) {
    case 'sessionToken':
      return { mode, fingerprint: createHash('sha256').update(identity.token).digest('hex').slice(0, 8) };
    case 'aclUser':
      return { mode, identity: identity.userId };
    case 'aclRole':
      return { mode, identity: identity.role };
    case 'master':
      return { mode };
  }
}

const orNull = <T>(list: readonly T[]): readonly T[] | null => (list.length > 0 ? list : null);

interface ClassDescriptionParts {
  readonly agent: Agent;
  readonly scope: AgentScope;
  readonly methods: DeclaredMethods;
  readonly gates: EnvironmentGates;
}

/** @param className canonical */
function describeClass(
  { agent, scope, methods, gates }: ClassDescriptionParts,
  className: string,
): DescribedClass {
  const policy = scope.classPolicy(className);
  const { masks } = scope.access(className);
  const tenant = tenantBinding(agent, policy);
  const filters = listFilteredFields(agent.definition);
  const filtered = [...new Set([...(filters?.['default'] ?? []), ...(filters?.[className] ?? [])])].sort();
  const callable = methods
    .of(className)
    .filter(({ name, permission }) => methodGate(agent, { className, name, permission }, gates) === null)
    .map(({ name }) => name)
    .sort();
  return {
    class_name: className,
    accessible: accessible(agent, scope, className),
    agent_fields: policy.fields,
    agent_canonical_filter: policy.canonicalFilter,
    per_agent_filter: orNull(filtered),
    tenant_scope:
      tenant === null || isTenantRefusal(tenant) ? null : { field: tenant.field, value: tenant.value },
    large_fields: orNull(policy.largeFields),
    ...(masks && { masked_fields: Object.fromEntries(describeMasks(masks)) }),
    agent_methods: orNull(callable),
  };
}

/** The result of the class gate. It does not check that the class exists. */
function accessible(agent: Agent, scope: AgentScope, className: string): DescribedClass['accessible'] {
  const admitted = scope.admit(agent, className);
  if (typeof admitted === 'string') return 'permitted';
  const kind = admitted.details?.kind;
  if (kind === 'misconfigured_class') return 'misconfigured';
  return kind === 'class_filter' ? 'class_filter_excluded' : 'hidden';
}

/** The call to check. Members that are left out are not checked. */
export interface PermitQuestion {
  /** The class that the call would name. */
  readonly class_name?: string;
  /** The operation on the class, named as in class-level permissions. Without it they are not checked. */
  readonly op?: ClassOperation;
  /** For `call_method`. */
  readonly method_name?: string;
}

/** Whether a call would pass, or the gate that refuses it and why. */
export type PermitAnswer =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly reason: string; readonly denied_at: PermitGate };

type PermitGate =
  | 'allowed_tools'
  | 'write_env_gate'
  | 'schema_env_gate'
  | 'master_atlas_gate'
  | 'assert_class_accessible!'
  | 'method_filtered';

interface PermitParts {
  readonly registry: ToolRegistry;
  readonly methods: CallableMethods;
  readonly gates: EnvironmentGates;
  readonly records: GovernedRecordsSource;
}

const denied = (reason: string, denied_at: PermitGate): PermitAnswer => ({
  allowed: false,
  reason,
  denied_at,
});

const SCHEMA_GATES = /PARSE_AGENT_ALLOW_(SCHEMA_OPS|RAW_SCHEMA)/;

function environmentDenial(refusal: Refusal): PermitAnswer {
  return SCHEMA_GATES.test(refusal.message)
    ? denied('schema_env_gate_disabled', 'schema_env_gate')
    : denied('write_env_gate_disabled', 'write_env_gate');
}

/**
 * Runs the gates of a call in their order without the call: it consumes nothing, records nothing and reads only the
 * schema.
 */
async function wouldPermit(
  { registry, methods, gates, records }: PermitParts,
  agent: Agent,
  tool: string,
  question: PermitQuestion,
): Promise<PermitAnswer> {
  const definition = registry.get(tool)?.definition;
  if (toolGate(agent, tool, definition, () => [])) return denied('tool_filtered', 'allowed_tools');
  const shut = envGate(agent, tool, gates, definition);
  if (shut) return environmentDenial(shut);
  if (tool === 'atlas_faceted_search' && !agent.definition.masterAtlas)
    return denied('master_atlas_required', 'master_atlas_gate');
  if (question.class_name !== undefined && question.class_name !== '') {
    const scope = await records.findScope(agent);
    const entered = scope.enter(agent, question.class_name, question.op ?? null);
    if (isRefusal(entered)) return denied(entered.details?.kind ?? entered.code, 'assert_class_accessible!');
  }
  return methodDenial({ methods, gates }, agent, tool, question) ?? { allowed: true };
}

function methodDenial(
  { methods, gates }: Pick<PermitParts, 'methods' | 'gates'>,
  agent: Agent,
  tool: string,
  { class_name, method_name }: PermitQuestion,
): PermitAnswer | null {
  if (tool !== 'call_method' || class_name === undefined || method_name === undefined) return null;
  const className = canonicalClassName(class_name);
  const method = methods.find(className, method_name);
  if (!method) return denied('method_filtered', 'method_filtered');
  const refusal = methodGate(agent, { className, name: method_name, permission: method.permission }, gates);
  if (!refusal) return null;
  return refusal.gate === 'env_gates'
    ? environmentDenial(refusal)
    : denied('method_filtered', 'method_filtered');
}
