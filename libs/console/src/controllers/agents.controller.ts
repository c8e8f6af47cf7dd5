import { Body, Get, HttpCode, Inject, Param, Post, UseInterceptors } from '@nestjs/common';
import { IsIn, IsString, ValidateIf } from 'class-validator';
import { oneLine } from '#audit';
import { ConfigVersions } from '#config';
import { SuspendedAgents, type Suspension } from '#state';
import { createValidationPipe, JsonBodyInterceptor, NotServed } from '#streaming';
import { CurrentOperator, OperatorController, WithoutSharedState } from '../console.guards.js';
import { type Operator, OperatorNotes } from '../operator-gate.js';

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
@OperatorController('console/api/suspensions')
export class AgentsController {
  constructor(
    @Inject(SuspendedAgents) private readonly suspended: SuspendedAgents,
    @Inject(ConfigVersions) private readonly versions: ConfigVersions,
    @Inject(OperatorNotes) private readonly notes: OperatorNotes,
  ) {}

  @Get()
  @WithoutSharedState()
  list(): AgentsAnswer {
    const names = new Set([
      ...this.versions.current.agents.keys(),
      ...this.suspended.list().map(({ agent }) => agent),
    ]);
    return { scope: this.suspended.reach, agents: [...names].sort().map((name) => this.describe(name)) };
  }

  /** @throws NotServed, SharedStateUnavailable */
  @Post(':agent')
  @HttpCode(200)
  @UseInterceptors(JsonBodyInterceptor)
  async change(
    @Param('agent') agent: string,
    @CurrentOperator() operator: Operator,
    @Body(createValidationPipe(SuspensionBody)) { action, reason }: SuspensionBody,
  ): Promise<ChangedAgent> {
    const why = reason === undefined ? undefined : oneLine(reason).trim().slice(0, MAX_REASON);
    const isKnown =
      this.versions.current.agents.has(agent) || this.suspended.list().some((one) => one.agent === agent);
    if (!isKnown) throw new NotServed(404, 'no such agent');
    const changed =
      action === 'suspend' ? await this.suspend(agent, operator, why) : await this.suspended.resume(agent);
    if (changed) this.notes.write(operator, `console.${action}_agent`, agent, why);
    return { ...this.describe(agent), scope: this.suspended.reach, changed };
  }

  /** @throws NotServed */
  private suspend(agent: string, operator: Operator, reason = ''): Promise<boolean> {
    const { definition, principal } = operator.agent;
    if (reason === '') throw new NotServed(400, 'reason must say why the agent is suspended');
    if (definition.name === agent)
      throw new NotServed(409, 'you act as this agent: another operator may suspend it');
    return this.suspended.suspend({ agent, by: principal, reason });
  }

  private describe(name: string): ListedAgent {
    const found = this.suspended.list().find(({ agent }) => agent === name);
    const configured = this.versions.current.agents.has(name);
    if (!found) return { name, configured, suspended: null };
    const { agent: _agent, ...suspended } = found;
    return { name, configured, suspended };
  }
}
