import { type ApprovalDecision, type ApprovalRequest, Approver } from '#dispatcher';

/** All of them have to say yes, one after the other; the first that does not is the answer. */
export class ApproversInTurn extends Approver {
  constructor(private readonly approvers: readonly [Approver, ...Approver[]]) {
    super();
  }

  async review(request: ApprovalRequest): Promise<ApprovalDecision> {
    let decision: ApprovalDecision | undefined;
    for (const approver of this.approvers) {
      decision = await approver.review(request);
      if (decision.outcome !== 'approve') return decision;
    }
    return decision as ApprovalDecision;
  }
}
