import type { CallContext, Tier } from '#agent';
import type { ToolDefinition } from '#tools';

export interface ApprovalRequest {
  readonly tool: ToolDefinition;
  readonly args: unknown;
  readonly context: CallContext;
  /** The tier the call acts at: for call_method that of the method it names. */
  readonly effectivePermission: Tier;
  /** What a person is shown: a dry run of a declared method, or the proposal itself. Runs nothing that changes data. */
  preview(): Promise<unknown>;
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
