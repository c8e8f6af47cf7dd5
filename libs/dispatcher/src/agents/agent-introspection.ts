import { type CallContext, canonicalClassName, isClassName, type Agent } from '#agent';
import { filteredFields } from '#audit';
import type { AgentScope, Policies } from '#policy';
import type { PermittedTools } from '#tools';
import { CONVENTIONS_VERSION } from '../prompts/conventions.js';
import {
  describedAuth,
  type DescribedClass,
  describedClass,
  listedFilter,
  type ListedFilter,
} from './describe-agent.js';
import { type PermitAnswer, type PermitParts, type PermitQuestion, wouldPermit } from './would-permit.js';

/** An agent as its operator sees it. What does not apply is null. */
export interface DescribedAgent {
  /** Of this agent alone. */
  readonly agent_id: string;
  /** 0 for the agent of a request, one more for each sub-agent below it. */
  readonly agent_depth: number;
  /** Its tier. */
  readonly permissions: string;
  /** How it is authenticated; of a token a fingerprint. */
  readonly auth: Readonly<Record<string, string>>;
  /** Its tenant. */
  readonly tenant_id: string | number | null;
  /** Which classes it is limited to. */
  readonly classes: ListedFilter | null;
  /** `effective`: what it may call, as it would be listed to it. */
  readonly tools: { readonly effective: readonly string[] } & ListedFilter;
  /** Which declared methods it is limited to. */
  readonly methods: ListedFilter | null;
  /** Class to the names of the constrained fields. */
  readonly filters: Readonly<Record<string, readonly string[]>> | null;
  /** Classes that the policy hides from it. */
  readonly hidden_classes: readonly string[];
  /** The classes that `classes` or `filters` name. */
  readonly per_class: Readonly<Record<string, Omit<DescribedClass, 'class_name'>>>;
  /** Whether unknown names in its filters are errors. */
  readonly strict_modes: { readonly tool_filter: boolean; readonly class_filter: boolean };
  /** What threads the records of this request. */
  readonly correlation_id: string | null;
  /** Which version of the conventions it is given. */
  readonly prompt: { readonly version: string };
}

export interface IntrospectionParts extends PermitParts {
  readonly policies: Pick<Policies, 'of'>;
  readonly tools: PermittedTools;
}

/**
 * What an agent may do and why not, for operators: its answers come from the functions that decide calls. Never to be
 * shown to an agent.
 */
export class AgentIntrospection {
  constructor(private readonly parts: IntrospectionParts) {}

  /** Every limit of the agent of a request. @throws Refused when the database does not answer */
  async describe(context: Pick<CallContext, 'agent' | 'correlationId'>): Promise<DescribedAgent> {
    const { agent } = context;
    const { policies, tools, records } = this.parts;
    const { shape } = agent;
    const scope = await records.scopeOf(agent);
    const filters = filteredFields(shape);
    const strict = policies.of(agent).switches;
    return {
      agent_id: agent.agentId,
      agent_depth: agent.depth,
      permissions: agent.permissions,
      auth: describedAuth(agent),
      tenant_id: agent.tenantId,
      classes: listedFilter(shape.classes),
      tools: {
        ...(listedFilter(shape.tools) ?? { only: null, except: null }),
        effective: tools.list({ agent }).map(({ name }) => name),
      },
      methods: listedFilter(shape.methods),
      filters,
      hidden_classes: this.hidden(agent, scope),
      per_class: this.perClass(agent, scope, Object.keys(filters ?? {})),
      strict_modes: {
        tool_filter: shape.strictToolFilter ?? strict.strictToolFilter,
        class_filter: shape.strictClassFilter ?? strict.strictClassFilter,
      },
      correlation_id: context.correlationId ?? null,
      prompt: { version: CONVENTIONS_VERSION },
    };
  }

  /** `describe` as indented JSON. */
  async describeAsText(context: Pick<CallContext, 'agent' | 'correlationId'>): Promise<string> {
    return JSON.stringify(await this.describe(context), null, 2);
  }

  /**
   * One class as the agent meets it.
   * @throws TypeError when the name cannot be one of a class
   * @throws Refused when the database does not answer
   */
  async describeFor(agent: Agent, className: string): Promise<DescribedClass> {
    if (!isClassName(className)) throw new TypeError('describeFor: expected the name of a class');
    const scope = await this.parts.records.scopeOf(agent);
    return describedClass({ ...this.parts, agent, scope }, canonicalClassName(className));
  }

  /**
   * The constraint that every read of a class carries for the agent, values included; null: none. A filter that is a function is
   * asked. Descriptions name fields alone.
   * @throws TypeError when the name cannot be one of a class
   * @throws Refused when the database does not answer, or a function gives no usable constraint
   */
  async filterFor(agent: Agent, className: string): Promise<Readonly<Record<string, unknown>> | null> {
    if (!isClassName(className)) throw new TypeError('filterFor: expected the name of a class');
    const scope = await this.parts.records.scopeOf(agent);
    return scope.agentFilter(agent, canonicalClassName(className));
  }

  /** Whether a call would pass the gates; approval and the rate limit are not asked, for asking would spend them. */
  wouldPermit(agent: Agent, tool: string, question: PermitQuestion = {}): Promise<PermitAnswer> {
    return wouldPermit(this.parts, agent, tool, question);
  }

  private hidden(agent: Agent, scope: AgentScope): string[] {
    const names = new Set([...scope.schemas.classNames(), ...scope.policy.classes.keys()]);
    return [...names].filter((name) => scope.hides(agent, name)).sort();
  }

  private perClass(
    agent: Agent,
    scope: AgentScope,
    filtered: readonly string[],
  ): DescribedAgent['per_class'] {
    const { only, except } = agent.shape.classes;
    const named = new Set([
      ...(only ?? []),
      ...(except ?? []),
      ...filtered.filter((name) => name !== 'default'),
    ]);
    return Object.fromEntries(
      [...named].sort().map((name) => {
        const { class_name, ...described } = describedClass({ ...this.parts, agent, scope }, name);
        return [class_name, described];
      }),
    );
  }
}
