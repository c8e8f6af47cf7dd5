import type { CallContext } from '#agent';
import type { ToolDefinition } from '#tools';

export interface ApprovalRequest {
  readonly tool: ToolDefinition;
  readonly args: unknown;
  readonly context: CallContext;
}

export type ApprovalDecision =
  { readonly outcome: 'approve' } | { readonly outcome: 'deny' | 'unavailable'; readonly reason: string };

/** Asks a person whether a gated call may run (docs/policy.md#approval). Anything but `approve` refuses it. */
export abstract class Approver {
  abstract review(request: ApprovalRequest): Promise<ApprovalDecision>;
}

/** Nobody can be asked: every gated call is refused. */
export class NoApprover extends Approver {
  async review(): Promise<ApprovalDecision> {
    return {
      outcome: 'unavailable',
      reason: 'approval required but the client did not advertise the elicitation capability',
    };
  }
}
