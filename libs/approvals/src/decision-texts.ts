import type { UnreachableReason } from '#dispatcher';

/** Why a call that needs approval was not let through, in the words of the refusal. */
export const REASONS = {
  undeclared: 'approval required but the client did not advertise the elicitation capability',
  noStream: 'approval required but no listening stream is open to request it',
  noSession: 'approval required but no session correlation id is available',
  notDelivered: 'approval required but the elicitation request could not be delivered',
  aborted: 'approval request aborted (session terminated or stream closed)',
  rejected: 'operation rejected by approver',
  cancelled: 'operation cancelled by approver',
  changed:
    'approval no longer applies: what the operation would change has changed since it was shown; call again',
  used: 'approval was already used by another call',
  tooMany: 'approval required but too many requests of this caller are pending',
  noSharedState: 'approval required but the state that keeps approvals cannot be reached',
} as const;

/** @param seconds that there were to decide */
export function timedOut(seconds: number): string {
  return `approval request timed out after ${seconds}s`;
}

/** @param seconds that there were to decide */
export function reasonOf(unreachable: UnreachableReason, seconds: number): string {
  switch (unreachable) {
    case 'no-session':
      return REASONS.noSession;
    case 'no-stream':
      return REASONS.noStream;
    case 'not-delivered':
      return REASONS.notDelivered;
    case 'timed-out':
      return timedOut(seconds);
    case 'aborted':
      return REASONS.aborted;
  }
}
