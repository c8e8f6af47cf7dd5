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
  readonly agent_id: string;
  readonly agent_depth: number;
  readonly permissions: string;
  readonly auth: Readonly<Record<string, string>>;
  readonly tenant_id: string | number | null;
  readonly classes: ListedFilter | null;
  /** `effective`: what it may call, as it would be listed to it. */
  readonly tools: { readonly effective: readonly string[] } & ListedFilter;
  readonly methods: ListedFilter | null;
  /** Class to the names of the constrained fields. */
  readonly filters: Readonly<Record<string, readonly string[]>> | null;
  readonly hidden_classes: readonly string[];
  /** The classes that `classes` or `filters` name. */
  readonly per_class: Readonly<Record<string, Omit<DescribedClass, 'class_name'>>>;
  readonly strict_modes: { readonly tool_filter: boolean; readonly class_filter: boolean };
  readonly correlation_id: string | null;
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

  /** @throws Refused when the database does not answer */
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
   * @throws TypeError when the name cannot be one of a class
   * @throws Refused when the database does not answer
   */
  async describeFor(agent: Agent, className: string): Promise<DescribedClass> {
    if (!isClassName(className)) throw new TypeError('describeFor: expected the name of a class');
    const scope = await this.parts.records.scopeOf(agent);
    return describedClass({ ...this.parts, agent, scope }, canonicalClassName(className));
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
