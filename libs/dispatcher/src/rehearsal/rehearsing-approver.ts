import { type ApprovalDecision, type ApprovalRequest, Approver } from '../tool-pipeline/approver.js';

/** Says yes for the person who would be asked, and remembers that somebody would be. */
export class RehearsingApprover extends Approver {
  private asked = false;

  /** Whether a person would have been asked since the last time. */
  take(): boolean {
    const { asked } = this;
    this.asked = false;
    return asked;
  }

  async review(_request: ApprovalRequest): Promise<ApprovalDecision> {
    this.asked = true;
    return { outcome: 'approve' };
  }
}
