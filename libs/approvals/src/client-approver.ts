import { QuestionChanged } from '#agent';
import { SharedStateUnavailable } from '#cluster';
import { type ApprovalDecision, type ApprovalRequest, Approver, ClientUnreachable } from '#dispatcher';
import { approvalQuestion } from './approval-question.js';
import { REASONS, reasonOf } from './decision-texts.js';

const KEY = 'approve';
/** What a call that goes on asking remembers the decision by. */
const GRANT = 'approval.client';

/** Asks whoever sits at the calling client. A client that cannot be asked gets a no. */
export class ClientApprover extends Approver {
  /** @param timeout seconds that a client has; told, not measured here */
  constructor(private readonly timeout: number) {
    super();
  }

  async review(request: ApprovalRequest): Promise<ApprovalDecision> {
    const { asks } = request.context;
    if (!asks) return { outcome: 'unavailable', reason: REASONS.undeclared };
    const { shown, holdsFor } = await request.preview();
    const by = await asks.granted?.recall(GRANT, holdsFor);
    if (by !== undefined) return { outcome: 'approve', by: { principal: by, via: 'client' }, again: true };
    const question = approvalQuestion(request, shown);
    // The stateless era has an answer of its own for a capability that was not declared.
    if (!asks.canAnswer(question) && !asks.postpone) {
      return { outcome: 'unavailable', reason: REASONS.undeclared };
    }
    try {
      const answer = await asks.ask(KEY, question, { once: { holdsFor } });
      if (answer.action === 'cancel') return this.denied(request, REASONS.cancelled);
      if (answer.action === 'decline') return this.denied(request, REASONS.rejected);
      if (answer.content['approve'] === false) return this.denied(request, REASONS.rejected);
    } catch (error) {
      return this.undecided(error);
    }
    // A client may have taken minutes: what it approved must still be what would happen.
    const { holdsFor: now } = await request.preview();
    if (now !== holdsFor) return { outcome: 'deny', reason: REASONS.changed };
    asks.granted?.keep(GRANT, holdsFor, request.context.agent.principal);
    return { outcome: 'approve', by: byClient(request) };
  }

  private denied(request: ApprovalRequest, reason: string): ApprovalDecision {
    return { outcome: 'deny', reason, by: byClient(request) };
  }

  /** @throws what the protocol has to answer, as a question that is only now asked */
  private undecided(error: unknown): ApprovalDecision {
    if (error instanceof ClientUnreachable)
      return { outcome: 'unavailable', reason: reasonOf(error.reason, this.timeout) };
    if (error instanceof QuestionChanged) return { outcome: 'deny', reason: REASONS.changed };
    if (error instanceof SharedStateUnavailable)
      return { outcome: 'unavailable', reason: REASONS.noSharedState };
    throw error;
  }
}

const byClient = ({ context }: ApprovalRequest) => ({
  principal: context.agent.principal,
  via: 'client' as const,
});
