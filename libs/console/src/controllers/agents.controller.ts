import { Body, Get, HttpCode, Inject, Param, Post, Query, UseInterceptors } from '@nestjs/common';
import { ArrayMaxSize, IsIn, IsString, ValidateIf } from 'class-validator';
import { oneLine } from '#audit';
import { ConfigVersions, type ListedKey, listKeys } from '#config';
import {
  cutText,
  type AgentDefinition,
  type DataBudget,
  type DataUse,
  type RateUsage,
  SlidingRateLimiter,
} from '#core';
import { DataBudgets } from '#dispatcher';
import { Convert } from '#schema';
import { SharedStateUnavailable, SuspendedAgents, type Suspension } from '#state';
import { createValidationPipe, JsonBodyInterceptor, NotServed } from '#streaming';
import { CurrentOperator, OperatorController, WithoutSharedState } from '../console.guards.js';
import { nameOperator, type Operator, OperatorNotes } from '../operator-gate.js';

/** An agent by its name, and who suspended it. */
export interface ListedAgent {
  readonly name: string;
  /** False: it is suspended, and no longer in the configuration of the replica that answers. */
  readonly configured: boolean;
  readonly suspended: Omit<Suspension, 'agent'> | null;
}

export interface AgentsAnswer {
  /** `process`: without Redis a suspension counts for the process that answers, until it ends. */
  readonly scope: 'process' | 'replicas';
  readonly agents: readonly ListedAgent[];
}

export interface ChangedAgent extends ListedAgent {
  readonly scope: AgentsAnswer['scope'];
  /** False: it was so before. */
  readonly changed: boolean;
}

/** How much of its limits one caller has used now. */
interface CallerUse {
  readonly principal: string;
  /** Null where an application counts its calls. */
  readonly rate: RateUsage | null;
  /** Null without a budget. */
  readonly budget: DataUse | null;
}

/** One agent: its rights, limits and keys. What it may read is in the policy, what it did in the audit. */
export interface AgentAnswer extends ListedAgent {
  readonly scope: AgentsAnswer['scope'];
  /** Null: it is suspended, and no longer in the configuration. */
  readonly definition:
    | (Pick<AgentDefinition, 'permissions' | 'writes' | 'rate'> & {
        readonly tenant_id: AgentDefinition['tenantId'];
        readonly budget: DataBudget | null;
      })
    | null;
  readonly keys: readonly ListedKey[];
  /** Of the callers that were asked for; null while the shared state cannot be reached. */
  readonly used: readonly CallerUse[] | null;
}

/** The callers whose use of the limits is asked for. */
export class CallersQuery {
  @Convert((value) => [value].flat().map(String))
  @ArrayMaxSize(20, { message: 'principal: at most 20 callers' })
  principal: string[] = [];
}

const MAX_REASON = 500;

/** The body of a request that suspends or resumes an agent. */
export class SuspensionBody {
  @IsIn(['suspend', 'resume'], { message: 'action must be suspend or resume' })
  action!: 'suspend' | 'resume';

  @ValidateIf(({ action, reason }: SuspensionBody) => action === 'suspend' || reason !== undefined)
  @IsString({ message: 'reason must be text: why the agent is suspended' })
  reason?: string;
}

/** Suspends agents at once, and resumes them. */
@OperatorController('console/api')
export class AgentsController {
  constructor(
    @Inject(SuspendedAgents) private readonly suspended: SuspendedAgents,
    @Inject(ConfigVersions) private readonly versions: ConfigVersions,
    @Inject(OperatorNotes) private readonly notes: OperatorNotes,
    @Inject(DataBudgets) private readonly budgets: DataBudgets,
  ) {}

  @Get('suspensions')
  @WithoutSharedState()
  list(): AgentsAnswer {
    const names = new Set([
      ...this.versions.current.agents.keys(),
      ...this.suspended.list().map(({ agent }) => agent),
    ]);
    return { scope: this.suspended.reach, agents: [...names].sort().map((name) => this.describe(name)) };
  }

  /** @throws NotServed */
  @Get('agents/:agent')
  @WithoutSharedState()
  async read(
    @Param('agent') agent: string,
    @Query(createValidationPipe(CallersQuery)) { principal }: CallersQuery,
  ): Promise<AgentAnswer> {
    const { agents, config } = this.versions.current;
    const definition = agents.get(agent);
    this.assertKnown(agent);
    return {
      ...this.describe(agent),
      scope: this.suspended.reach,
      definition: definition ? showDefinition(definition) : null,
      keys: listKeys(config.auth).filter((key) => key.agents.includes(agent)),
      used: definition ? await this.readUse(definition, principal) : [],
    };
  }

  /** @throws NotServed, SharedStateUnavailable */
  @Post('suspensions/:agent')
  @HttpCode(200)
  @UseInterceptors(JsonBodyInterceptor)
  async change(
    @Param('agent') agent: string,
    @CurrentOperator() operator: Operator,
    @Body(createValidationPipe(SuspensionBody)) { action, reason }: SuspensionBody,
  ): Promise<ChangedAgent> {
    const why = reason === undefined ? undefined : cutText(oneLine(reason).trim(), MAX_REASON);
    this.assertKnown(agent);
    const noted = why === undefined ? {} : { reason: why };
    const changed = await this.notes.noteIfLost(operator, `console.${action}_agent`, {
      target: agent,
      ...noted,
      work: () => (action === 'suspend' ? this.suspend(agent, operator, why) : this.suspended.resume(agent)),
    });
    if (changed) this.notes.write(operator, `console.${action}_agent`, agent, noted);
    return { ...this.describe(agent), scope: this.suspended.reach, changed };
  }

  /** @throws NotServed */
  private suspend(agent: string, operator: Operator, reason = ''): Promise<boolean> {
    const { definition } = operator.agent;
    if (reason === '') throw new NotServed(400, 'reason must say why the agent is suspended');
    if (definition.name === agent)
      throw new NotServed(409, 'you act as this agent: another operator may suspend it');
    return this.suspended.suspend({ agent, by: nameOperator(operator), reason });
  }

  /** @throws NotServed */
  private assertKnown(agent: string): void {
    const { agents } = this.versions.current;
    if (!agents.has(agent) && !this.suspended.list().some((one) => one.agent === agent))
      throw new NotServed(404, `no such agent; the configuration has: ${[...agents.keys()].join(', ')}`);
  }

  private async readUse(
    definition: AgentDefinition,
    principals: readonly string[],
  ): Promise<AgentAnswer['used']> {
    const { rateLimiter } = definition;
    const read = async (principal: string): Promise<CallerUse> => ({
      principal,
      rate: rateLimiter instanceof SlidingRateLimiter ? await rateLimiter.usage(principal) : null,
      budget: await this.budgets.readUse(definition, principal),
    });
    try {
      return await Promise.all(principals.map(read));
    } catch (error) {
      if (error instanceof SharedStateUnavailable) return null;
      throw error;
    }
  }

  private describe(name: string): ListedAgent {
    const found = this.suspended.list().find(({ agent }) => agent === name);
    const configured = this.versions.current.agents.has(name);
    if (!found) return { name, configured, suspended: null };
    const { agent: _agent, ...suspended } = found;
    return { name, configured, suspended };
  }
}

const showDefinition = ({ permissions, writes, rate, tenantId, budget }: AgentDefinition) => ({
  permissions,
  writes,
  rate,
  tenant_id: tenantId,
  budget,
});
