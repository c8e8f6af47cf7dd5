import { Inject, Injectable, Logger } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import {
  type Agent,
  type CodeCaller,
  type McpRequest,
  deriveAgent,
  refusals,
  SubAgentError,
  type SubAgentOptions,
  type Widening,
  findWidening,
  toRequest,
} from '#core';
import { PrincipalResolver } from '#data';
import { Policies } from '#policy';
import { FilterNames } from './filter-names.js';

/** Throws for invalid options of a sub-agent. It runs the checks of the configuration for untyped code as well. */
export type SubAgentOptionsCheck = (options: unknown) => void;

export const SUB_AGENT_CHECK = Symbol('check of the options of sub-agents');

/**
 * Creates the agents that a tool delegates to. Their calls run through `ToolRunner` like any call: every gate, approval
 * included, applies to them as to the parent agent.
 */
@Injectable()
export class SubAgents {
  private readonly logger = new Logger(SubAgents.name);

  /** @internal Made by the module. */
  constructor(
    private readonly identities: PrincipalResolver,
    private readonly names: FilterNames,
    private readonly policies: Policies,
    private readonly events: EventEmitter2,
    @Inject(SUB_AGENT_CHECK) private readonly assertOptions: SubAgentOptionsCheck,
  ) {}

  /**
   * Creates a context in which a sub-agent acts within the same request.
   * @throws SubAgentError when the options request more than the agent of the context has
   * @throws AgentOptionsError, a TypeError, that lists unknown options, invalid values, and unresolved names while
   * names are strict; no agent is created with fewer limits than the options contain
   * @throws Refused or Unauthorized when an identity cannot be resolved
   */
  async delegate(caller: CodeCaller, options: SubAgentOptions = {}): Promise<McpRequest> {
    const request = toRequest(caller);
    return request.with({ agent: await this.create(request.agent, options) });
  }

  /** As `delegate`, but returns the agent alone. */
  async create(parent: Agent, options: SubAgentOptions = {}): Promise<Agent> {
    this.assertOptions(options);
    if (Object.hasOwn(options, 'recursionDepth'))
      this.logger.warn('recursionDepth of a sub-agent is ignored: it follows from its parent');
    const child = deriveAgent(parent, options);
    await this.assertNames(child, options);
    await this.assertIdentity(parent, child);
    return child;
  }

  private async assertNames(child: Agent, options: SubAgentOptions): Promise<void> {
    const own = {
      tools: options.tools !== undefined,
      classes: options.classes !== undefined,
      filters: options.filters !== undefined,
    };
    for (const { option, path, message, strict } of await this.names.unknownIn(
      [child.definition],
      this.policies.of(child),
    )) {
      // Inherited options were checked when the parent was created.
      if (!own[option]) continue;
      const text = `sub-agent: ${path}: ${message}`;
      if (strict) throw new TypeError(text);
      this.logger.warn(text);
    }
  }

  private async assertIdentity(parent: Agent, child: Agent): Promise<void> {
    if (child.identity === parent.identity) return;
    const held = await this.identities.resolveAgent(parent);
    const widened = findWidening(held, await this.identities.resolve(child));
    if (!widened) return;
    this.events.emit('parse.agent.subagent_widen_refused', toEvent(widened));
    throw new SubAgentError('identity', refusals.subAgentWidens(widened).message);
  }
}

/** The event for operators. Unlike the error, it contains the agent's name. */
function toEvent({ reason, parent, child, extra }: Widening) {
  return {
    reason,
    parent_perm_count: parent.length,
    child_perm_count: child.length,
    parent_perms: parent,
    child_perms: child,
    extra,
  };
}
