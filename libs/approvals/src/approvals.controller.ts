import {
  Body,
  Controller,
  Get,
  HttpCode,
  Inject,
  Param,
  Post,
  Query,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import type { Agent } from '#core';
import { Authenticator } from '#auth';
import {
  CallerGuard,
  CallerRateGuard,
  ClosedSignal,
  createValidationPipe,
  CurrentAgent,
  JsonBodyInterceptor,
  NoStoreGuard,
  NotServed,
  ROUTE_PATHS,
  scopesLacking,
  SharedStateFilter,
} from '#streaming';
import {
  ApprovalService,
  type ApprovalServiceResult,
  ApprovalsQuery,
  DecisionBody,
  decisionRefused,
  toVerdict,
} from './approval-service.js';

/** Calls that wait for another person's approval, for approvers (docs/guide/approvals.md). */
@Controller(ROUTE_PATHS.approvals)
@UseGuards(NoStoreGuard, CallerGuard, CallerRateGuard)
@UseFilters(new SharedStateFilter('approvals cannot be reached at the moment'))
export class ApprovalRoutesController {
  constructor(
    @Inject(Authenticator) private readonly authenticator: Authenticator,
    @Inject(ApprovalService) private readonly approvals: ApprovalService,
  ) {}

  @Get()
  async list(
    @Query(createValidationPipe(ApprovalsQuery)) { change_set }: ApprovalsQuery,
    @CurrentAgent() agent: Agent,
  ): Promise<object> {
    return this.unwrapServed(await this.approvals.list(agent, change_set), agent);
  }

  @Get(':id')
  async show(
    @Param('id') id: string,
    @CurrentAgent() agent: Agent,
    @ClosedSignal() closed: AbortSignal,
  ): Promise<object> {
    return this.unwrapServed(await this.approvals.show(id, agent, closed), agent);
  }

  @Post(':id')
  @HttpCode(200)
  @UseInterceptors(JsonBodyInterceptor)
  async decide(
    @Param('id') id: string,
    @CurrentAgent() agent: Agent,
    @Body(createValidationPipe(DecisionBody)) body: DecisionBody,
    @ClosedSignal() closed: AbortSignal,
  ): Promise<object> {
    return this.unwrapServed(await this.approvals.decide(id, agent, toVerdict(body), closed), agent);
  }

  /** @throws NotServed */
  private unwrapServed<T>(answered: ApprovalServiceResult<T>, agent: Agent): T {
    if (answered.ok) return answered.value;
    const lacking =
      answered.refusal === 'forbidden' &&
      scopesLacking(this.authenticator, agent, (definition) => this.approvals.isStaffedBy(definition));
    throw lacking || new NotServed(...decisionRefused(answered.refusal, 'agent'));
  }
}
