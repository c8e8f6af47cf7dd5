import type { Answered, ApprovalOffice, ApprovalServiceRefusal, Verdict } from '#approvals';
import { NotServed, readSmallJson } from '#streaming';
import type { OperatorNotes } from '../operator-gate.js';
import type { Route } from '../route.js';

const REFUSED: Readonly<Record<ApprovalServiceRefusal, readonly [status: number, error: string]>> = {
  forbidden: [403, 'this operator may not decide approvals'],
  own_request: [403, "one's own request is decided by somebody else"],
  not_found: [404, 'no such approval'],
  decided_before: [409, 'this approval has been decided'],
};

/** Pending approvals. The approval service checks on its own whether an operator may see and decide them. */
export function approvalRoutes(approvals: ApprovalOffice, notes: OperatorNotes): readonly Route[] {
  return [
    {
      verb: 'GET',
      path: '/console/api/approvals',
      answer: async ({ operator }) => ({ body: { approvals: served(await approvals.list(operator.agent)) } }),
    },
    {
      verb: 'GET',
      path: '/console/api/approvals/*',
      answer: async ({ operator, segments: [id = ''], signal }) => ({
        body: served(await approvals.show(id, operator.agent, signal)),
      }),
    },
    {
      verb: 'POST',
      path: '/console/api/approvals/*',
      answer: async ({ operator, segments: [id = ''], request }) => {
        const verdict = verdictOf(await readSmallJson(request));
        const decided = served(await approvals.decide(id, operator.agent, verdict));
        notes.write(operator, verdict.approved ? 'console.approve' : 'console.deny', id);
        return { body: decided };
      },
    },
  ];
}

/** @throws NotServed */
function served<T>(answered: Answered<T>): T {
  if (!answered.ok) throw new NotServed(...REFUSED[answered.refusal]);
  return answered.value;
}

/** @throws NotServed */
function verdictOf({ decision, reason }: Readonly<Record<string, unknown>>): Verdict {
  if (decision !== 'approve' && decision !== 'deny')
    throw new NotServed(400, 'decision must be approve or deny');
  if (reason !== undefined && typeof reason !== 'string') throw new NotServed(400, 'reason must be text');
  return { approved: decision === 'approve', ...(reason !== undefined && { reason }) };
}
