import { Get, Inject, Query } from '@nestjs/common';
import { ExportOverview, type ListedExport } from '#exports';
import { createValidationPipe } from '#streaming';
import { type ListedTask, TaskOverview } from '#tasks';
import { CurrentOperator, OperatorController, WithoutSharedState } from '../console.guards.js';
import type { Operator } from '../operator-gate.js';
import { Overviews } from '../overview.js';
import { findRefusals, type Refusals } from '../refusals.js';
import { ReplicaStates, type ServiceState } from '../replica-states.js';
import { type ServiceReport, ServiceStatus } from '../replica-status.js';
import { PageQuery } from './page-query.js';

/** How all replicas are, for one operator. */
export interface StateAnswer extends ServiceState {
  /** The operator may read what the replica knows that answers, and do nothing: `Operator.degraded`. */
  readonly degraded: boolean;
  readonly refusals: Refusals;
}

/** The status of the replica that answers and of all, and tasks and exports of all principals, the latest first. */
@OperatorController('console/api')
export class StatusController {
  constructor(
    @Inject(ServiceStatus) private readonly status: ServiceStatus,
    @Inject(ReplicaStates) private readonly states: ReplicaStates,
    @Inject(Overviews) private readonly overviews: Overviews,
    @Inject(TaskOverview) private readonly tasks: TaskOverview,
    @Inject(ExportOverview) private readonly exports: ExportOverview,
  ) {}

  @Get('status')
  @WithoutSharedState()
  read(): Promise<ServiceReport> {
    return this.status.read();
  }

  @Get('state')
  @WithoutSharedState()
  async readAll(@CurrentOperator() { degraded }: Operator): Promise<StateAnswer> {
    const [state, overview] = await Promise.all([this.states.read(), this.overviews.read('1h')]);
    return { ...state, degraded, refusals: findRefusals(overview) };
  }

  @Get('tasks')
  async latestTasks(
    @Query(createValidationPipe(PageQuery)) { limit }: PageQuery,
  ): Promise<{ readonly tasks: readonly ListedTask[] }> {
    return { tasks: await this.tasks.latest(limit) };
  }

  @Get('exports')
  async latestExports(
    @Query(createValidationPipe(PageQuery)) { limit }: PageQuery,
  ): Promise<{ readonly exports: readonly ListedExport[] }> {
    return { exports: await this.exports.latest(limit) };
  }
}
