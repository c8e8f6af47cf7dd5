import { Inject, Injectable } from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Agent } from '#core';
import { type Answered, ApprovalOffice, type ApprovalServiceRefusal, type Verdict } from '#approvals';
import { Authenticator } from '#auth';
import { SharedStateUnavailable } from '#state';
import { McpEdge, NotServed, readSmallJson, UnusableBody } from '#streaming';
import {
  callerOf,
  isReading,
  type HttpRoute,
  notFound,
  scopesLacking,
  sendJson,
  tellRefused,
  wrongVerb,
} from './http-routes.js';

const REFUSED: Readonly<Record<ApprovalServiceRefusal, readonly [status: number, error: string]>> = {
  forbidden: [403, 'this agent may not decide approvals'],
  own_request: [403, "one's own request is decided by somebody else"],
  not_found: [404, 'no such approval'],
  decided_before: [409, 'this approval has been decided'],
};

/** One path segment; an id contains nothing that needs an escape. */
const ID = /^\/([A-Za-z0-9._~-]+)$/;

/** @throws UnusableBody */
function verdictOf({ decision, reason }: Readonly<Record<string, unknown>>): Verdict {
  if (decision !== 'approve' && decision !== 'deny')
    throw new UnusableBody(400, 'decision must be approve or deny');
  if (reason !== undefined && typeof reason !== 'string') throw new UnusableBody(400, 'reason must be text');
  return { approved: decision === 'approve', ...(reason !== undefined && { reason }) };
}

/** Calls that wait for another person's approval, for approvers (docs/guide/approvals.md). */
@Injectable()
export class ApprovalsRoute implements HttpRoute {
  readonly path = '/approvals';

  constructor(
    @Inject(Authenticator) readonly authenticator: Authenticator,
    @Inject(ApprovalOffice) private readonly office: ApprovalOffice,
    @Inject(McpEdge) readonly edge: McpEdge,
  ) {}

  async answer(request: IncomingMessage, response: ServerResponse, below: string): Promise<void> {
    if (below === '') {
      if (!isReading(request)) return wrongVerb(response, 'GET, HEAD');
      return this.admitted(request, response, (agent) => this.list(agent));
    }
    const [, id] = ID.exec(below) ?? [];
    if (id === undefined) return notFound(response);
    if (isReading(request)) return this.show(id, request, response);
    if (request.method !== 'POST') return wrongVerb(response, 'GET, HEAD, POST');
    return this.admitted(request, response, async (agent) => {
      const verdict = verdictOf(await readSmallJson(request));
      return this.office.decide(id, agent, verdict);
    });
  }

  private lackingOf(agent: Agent): NotServed | null {
    return scopesLacking(this.authenticator, agent, (shape) => this.office.isStaffedBy(shape));
  }

  private async list(agent: Agent): Promise<Answered<object>> {
    const answered = await this.office.list(agent);
    return answered.ok ? { ok: true, value: { approvals: answered.value } } : answered;
  }

  private show(id: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    return this.admitted(request, response, (agent) => this.office.show(id, agent, gone.signal));
  }

  /** Each of these requests counts as a call of the caller. */
  private async admitted(
    request: IncomingMessage,
    response: ServerResponse,
    work: (agent: Agent) => Promise<Answered<object>>,
  ): Promise<void> {
    response.setHeader('Cache-Control', 'no-store');
    const refuse = (status: number, error: string) => sendJson(response, status, { error });
    try {
      const agent = await callerOf(request, response, this);
      const spent = await agent.shape.rateLimiter.check(agent.principal);
      if (spent) {
        response.setHeader('Retry-After', String(Math.ceil(spent.retryAfter)));
        return refuse(429, 'Too Many Requests');
      }
      const answered = await work(agent);
      if (answered.ok) return sendJson(response, 200, answered.value);
      const lacking = answered.refusal === 'forbidden' && this.lackingOf(agent);
      if (lacking) return tellRefused(response, lacking);
      refuse(...REFUSED[answered.refusal]);
    } catch (error) {
      if (error instanceof NotServed) return tellRefused(response, error);
      if (error instanceof UnusableBody) return refuse(error.status, error.message);
      if (!(error instanceof SharedStateUnavailable)) throw error;
      response.setHeader('Retry-After', '5');
      refuse(503, 'approvals cannot be reached at the moment');
    }
  }
}
