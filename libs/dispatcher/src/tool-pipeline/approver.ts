import type { CallContext, Tier } from '#agent';
import type { ToolDefinition } from '#tools';
import type { ApprovalPreview } from './approval-preview.js';

/** A call that needs a yes. */
export interface ApprovalRequest {
  /** What is called. */
  readonly tool: ToolDefinition;
  /** As the agent wrote them. */
  readonly args: unknown;
  /** Who calls, and how long somebody waits for it. */
  readonly context: CallContext;
  /** The tier the call acts at: for call_method that of the method it names. */
  readonly effectivePermission: Tier;
  /** What a person is shown, made anew each time. Changes no data. @throws Refused when the call would be refused anyway */
  preview(): Promise<ApprovalPreview>;
}

/** What came of asking. A reason is for the record; the agent is told the outcome alone. */
export type ApprovalDecision = {
  /** Who decided, and through what; absent when nobody did. */
  readonly by?: { readonly principal: string; readonly via: 'client' | 'desk' };
  /** Given in an earlier run of the same call, and told then. */
  readonly again?: true;
} & ({ readonly outcome: 'approve' } | { readonly outcome: 'deny' | 'unavailable'; readonly reason: string });

/** Asks a person whether a gated call may run (docs/policy.md#approval). Anything but `approve` refuses it. */
export abstract class Approver {
  /** Decides on one call, or says that nobody does. */
  abstract review(request: ApprovalRequest): Promise<ApprovalDecision>;
}
