import { Get, Inject, Query } from '@nestjs/common';
import { IsIn } from 'class-validator';
import { ApprovalService } from '#approvals';
import { ExportOverview } from '#exports';
import { SharedStateUnavailable } from '#state';
import { createValidationPipe } from '#streaming';
import { TaskOverview } from '#tasks';
import { type WindowName, WINDOWS } from '../call-statistics.js';
import { CurrentOperator, OperatorController, WithoutSharedState } from '../console.guards.js';
import type { Operator } from '../operator-gate.js';
import { type Overview, Overviews } from '../overview.js';

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
    /** More of them wait. */
    readonly approvals_capped: boolean;
    /** Null while the shared state cannot be reached; so are exports. */
    readonly tasks: number | null;
    /** More of them may wait. */
    readonly tasks_capped: boolean;
    readonly exports: number | null;
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
  @WithoutSharedState()
  async read(
    @Query(createValidationPipe(OverviewQuery)) { window }: OverviewQuery,
    @CurrentOperator() { agent }: Operator,
  ): Promise<OverviewAnswer> {
    const [overview, approvals, tasks, exports] = await Promise.all([
      this.overviews.read(window),
      nullWhileSilent(this.approvals.list(agent)),
      nullWhileSilent(this.tasks.latest(MAX_COUNTED)),
      nullWhileSilent(this.exports.latest(MAX_COUNTED)),
    ]);
    return {
      ...overview,
      waiting: {
        // An operator that decides none sees none.
        approvals: approvals?.ok ? approvals.value.approvals.filter(({ own }) => !own).length : null,
        approvals_capped: approvals?.ok === true && approvals.value.more === true,
        tasks:
          tasks?.filter(({ status }) => status === 'working' || status === 'input_required').length ?? null,
        tasks_capped: tasks?.length === MAX_COUNTED,
        exports: exports?.length ?? null,
        exports_capped: exports?.length === MAX_COUNTED,
      },
    };
  }
}

/** What is in the shared state; null while it cannot be reached. */
function nullWhileSilent<T>(read: Promise<T>): Promise<T | null> {
  return read.catch((error: unknown) => {
    if (error instanceof SharedStateUnavailable) return null;
    throw error;
  });
}
