import { Body, Get, HttpCode, Inject, Param, Post, UseInterceptors } from '@nestjs/common';
import {
  type ApprovalServiceResult,
  ApprovalService,
  type ApprovalView,
  DecisionBody,
  decisionRefused,
  type DetailedApprovalView,
  type ListedApprovals,
  toVerdict,
} from '#approvals';
import { ClosedSignal, JsonBodyInterceptor, NotServed, createValidationPipe } from '#streaming';
import { CurrentOperator, OperatorController } from '../console.guards.js';
import { type Operator, OperatorNotes } from '../operator-gate.js';

export type ApprovalsAnswer = ListedApprovals;

/** Pending approvals. The approval service checks on its own whether an operator may see and decide them. */
@OperatorController('console/api/approvals')
export class ApprovalsController {
  constructor(
    @Inject(ApprovalService) private readonly approvals: ApprovalService,
    @Inject(OperatorNotes) private readonly notes: OperatorNotes,
  ) {}

  @Get()
  async list(@CurrentOperator() { agent }: Operator): Promise<ApprovalsAnswer> {
    return unwrapServed(await this.approvals.list(agent));
  }

  @Get(':id')
  async show(
    @Param('id') id: string,
    @CurrentOperator() { agent }: Operator,
    @ClosedSignal() closed: AbortSignal,
  ): Promise<DetailedApprovalView> {
    return unwrapServed(await this.approvals.show(id, agent, closed));
  }

  @Post(':id')
  @HttpCode(200)
  @UseInterceptors(JsonBodyInterceptor)
  async decide(
    @Param('id') id: string,
    @CurrentOperator() operator: Operator,
    @Body(createValidationPipe(DecisionBody)) body: DecisionBody,
    @ClosedSignal() closed: AbortSignal,
  ): Promise<ApprovalView> {
    const verdict = toVerdict(body);
    const answered = await this.approvals.decide(id, operator.agent, verdict, closed);
    const isUnconfirmed = !answered.ok && answered.refusal === 'unconfirmed';
    if (answered.ok || isUnconfirmed)
      this.notes.write(operator, verdict.approved ? 'console.approve' : 'console.deny', id, {
        isUnconfirmed,
      });
    return unwrapServed(answered);
  }
}

/** @throws NotServed */
function unwrapServed<T>(answered: ApprovalServiceResult<T>): T {
  if (!answered.ok) throw new NotServed(...decisionRefused(answered.refusal, 'operator'));
  return answered.value;
}
