import { Controller, Get, Inject, Logger, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Agent } from '#agent';
import { type Answered, ApprovalOffice, type OfficeRefusal, type Verdict } from '#approvals';
import { Authenticator } from '#auth';
import { SharedStateUnavailable } from '#cluster';
import { McpEdge, readSmallJson, UnusableBody } from '#streaming';
import { callerOf, NotServed, scopesLacking } from './caller.js';

const REFUSED: Readonly<Record<OfficeRefusal, readonly [status: number, error: string]>> = {
  forbidden: [403, 'this agent may not decide approvals'],
  own_request: [403, "one's own request is decided by somebody else"],
  not_found: [404, 'no such approval'],
  decided_before: [409, 'this approval has been decided'],
};

/** @throws UnusableBody */
function verdictOf({ decision, reason }: Readonly<Record<string, unknown>>): Verdict {
  if (decision !== 'approve' && decision !== 'deny')
    throw new UnusableBody(400, 'decision must be approve or deny');
  if (reason !== undefined && typeof reason !== 'string') throw new UnusableBody(400, 'reason must be text');
  return { approved: decision === 'approve', ...(reason !== undefined && { reason }) };
}

/** Calls that wait for another person, for those who may decide them (docs/approvals.md). */
@Controller('approvals')
export class ApprovalsController {
  private readonly logger = new Logger(ApprovalsController.name);

  constructor(
    @Inject(Authenticator) readonly authenticator: Authenticator,
    @Inject(ApprovalOffice) private readonly office: ApprovalOffice,
    @Inject(McpEdge) readonly edge: McpEdge,
  ) {}

  @Get()
  async list(@Req() request: Request, @Res() response: Response): Promise<void> {
    await this.answer(request, response, async (agent) => {
      const answered = await this.office.list(agent);
      return answered.ok ? { ok: true, value: { approvals: answered.value } } : answered;
    });
  }

  @Get(':id')
  async show(@Param('id') id: string, @Req() request: Request, @Res() response: Response): Promise<void> {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    await this.answer(request, response, (agent) => this.office.show(id, agent, gone.signal));
  }

  @Post(':id')
  async decide(@Param('id') id: string, @Req() request: Request, @Res() response: Response): Promise<void> {
    await this.answer(request, response, async (agent) => {
      const verdict = verdictOf(await readSmallJson(request));
      return this.office.decide(id, agent, verdict);
    });
  }

  private lackingOf(agent: Agent): NotServed | null {
    return scopesLacking(this.authenticator, agent, (shape) => this.office.isStaffedBy(shape));
  }

  private async answer(
    request: Request,
    response: Response,
    work: (agent: Agent) => Promise<Answered<object>>,
  ): Promise<void> {
    response.setHeader('Cache-Control', 'no-store');
    const refuse = (status: number, error: string) => void response.status(status).json({ error });
    try {
      const agent = await callerOf(request, response, this);
      const spent = await agent.shape.rateLimiter.check(agent.principal);
      if (spent) {
        response.setHeader('Retry-After', String(Math.ceil(spent.retryAfter)));
        return refuse(429, 'Too Many Requests');
      }
      const answered = await work(agent);
      if (answered.ok) return void response.status(200).json(answered.value);
      const lacking = answered.refusal === 'forbidden' && this.lackingOf(agent);
      if (lacking) return lacking.answer(response);
      refuse(...REFUSED[answered.refusal]);
    } catch (error) {
      if (error instanceof NotServed) return error.answer(response);
      if (error instanceof UnusableBody) return refuse(error.status, error.message);
      if (error instanceof SharedStateUnavailable)
        return refuse(503, 'approvals cannot be reached at the moment');
      this.logger.error(`approvals failed: ${String(error)}`);
      refuse(500, 'Internal error');
    }
  }
}
