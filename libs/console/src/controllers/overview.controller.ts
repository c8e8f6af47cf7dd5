import { Get, Inject, Query } from '@nestjs/common';
import { IsIn } from 'class-validator';
import { ApprovalService } from '#approvals';
import { ExportOverview } from '#exports';
import { createValidationPipe } from '#streaming';
import { TaskOverview } from '#tasks';
import { type WindowName, WINDOWS } from '../call-statistics.js';
import { CurrentOperator, OperatorController } from '../console.guards.js';
import type { Operator } from '../operator-gate.js';
import { type Overview, Overviews } from '../overview.js';

/** The query of an overview. */
export class OverviewQuery {
  @IsIn(Object.keys(WINDOWS), { message: `window must be one of ${Object.keys(WINDOWS).join(', ')}` })
  window: WindowName = '1h';
}

/** Tasks and exports that are counted. */
const MAX_COUNTED = 200;

/** The answer of `GET /console/api/overview`. */
export interface OverviewAnswer extends Overview {
  readonly waiting: {
    /** Those that the operator may decide: not its own. Null for an operator that decides none. */
    readonly approvals: number | null;
    readonly tasks: number;
    /** More of them may wait. */
    readonly tasks_capped: boolean;
    readonly exports: number;
    readonly exports_capped: boolean;
  };
}

/** Calls over time, and what waits. */
@OperatorController('console/api/overview')
export class OverviewController {
  constructor(
    @Inject(Overviews) private readonly overviews: Overviews,
    @Inject(ApprovalService) private readonly approvals: ApprovalService,
    @Inject(TaskOverview) private readonly tasks: TaskOverview,
    @Inject(ExportOverview) private readonly exports: ExportOverview,
  ) {}

  @Get()
  async read(
    @Query(createValidationPipe(OverviewQuery)) { window }: OverviewQuery,
    @CurrentOperator() { agent }: Operator,
  ): Promise<OverviewAnswer> {
    const [overview, approvals, tasks, exports] = await Promise.all([
      this.overviews.read(window),
      this.approvals.list(agent),
      this.tasks.latest(MAX_COUNTED),
      this.exports.latest(MAX_COUNTED),
    ]);
    return {
      ...overview,
      waiting: {
        // An operator that decides none sees none.
        approvals: approvals.ok ? approvals.value.filter(({ own }) => !own).length : null,
        tasks: tasks.filter(({ status }) => status === 'working' || status === 'input_required').length,
        tasks_capped: tasks.length === MAX_COUNTED,
        exports: exports.length,
        exports_capped: exports.length === MAX_COUNTED,
      },
    };
  }
}
