import type { CallContext } from '#agent';
import type { OperationContext } from '../record-store.js';

/** What a call may spend at the database, and the name it carries there. */
export interface CallBudget {
  readonly tool: string;
  /** Seconds the tool may take as a whole. */
  readonly timeout: number;
}

/**
 * The database gives up before the tool does, so that a slow query is answered as one:
 * five seconds earlier, at least one second; short tools leave a fifth.
 */
function maxTimeMs(timeoutSeconds: number): number {
  return timeoutSeconds <= 6 ? Math.round(timeoutSeconds * 800) : Math.max(1000, (timeoutSeconds - 5) * 1000);
}

/** `parley:TOOL:CORRELATION`, and `:TRACE` where there is one; none of the three holds a colon (docs/observability.md). */
function commentOf({ correlationId, agent, telemetry }: CallContext, { tool }: CallBudget): string {
  const comment = `parley:${tool}:${correlationId ?? agent.agentId}`;
  return telemetry?.traceId === undefined ? comment : `${comment}:${telemetry.traceId}`;
}

export function operationContext(context: CallContext, budget: CallBudget): OperationContext {
  return {
    maxTimeMS: maxTimeMs(budget.timeout),
    comment: commentOf(context, budget),
    signal: context.signal,
    principal: context.agent.principal,
  };
}
