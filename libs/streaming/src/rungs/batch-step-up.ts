import type { Agent } from '#agent';
import type { StepUp } from '#auth';
import type { Outcome } from '../answers/answer-call.js';
import { batchNeedsScopes, batchScopeMissing } from '../http/refusals.js';
import type { Reply } from '../reply.js';
import type { Call } from '../wire/call.js';
import { insufficientScope } from './caller.js';
import type { EdgeParts } from './rung.js';
import { isPermitted, isPermittedTo, isScopeRefusal, stepUpOf } from './step-up.js';

/** What a batch lacks: one body has one status, and so one challenge. */
export interface BatchStepUp {
  readonly step: StepUp;
  /** The calls that are refused without it. */
  readonly lacking: readonly Call[];
}

/**
 * The nearest scopes with which everything in the batch that scopes could permit is permitted, and nothing is lost that is
 * permitted now; null when no call lacks any, or no single step would do.
 */
export function batchStepUpOf(calls: readonly Call[], edge: EdgeParts, agent: Agent): BatchStepUp | null {
  const lacking = calls.filter(({ message }) => stepUpOf(message, edge, agent) !== null);
  if (lacking.length === 0) return null;
  const wanted = calls.filter((call) => lacking.includes(call) || isPermitted(call.message, edge, agent));
  const step = edge.authenticator
    .stepsAbove(agent)
    .find(({ shape }) => wanted.every(({ message }) => isPermittedTo(shape, message, edge, agent)));
  return step ? { step, lacking } : null;
}

/**
 * The 403 of a batch whose lacking calls were made and refused; nothing else of it ran, because a client that comes back with
 * the scopes sends all of it again.
 * @returns null when a limit before the gates spoke: the batch is answered as any other
 */
export function insufficientForBatch(
  { step, lacking }: BatchStepUp,
  outcomes: ReadonlyMap<Call, Outcome>,
  calls: readonly Call[],
  edge: EdgeParts,
): Reply | null {
  for (const call of lacking) {
    const outcome = outcomes.get(call);
    if (!outcome || !isScopeRefusal(outcome, call.message, edge, call.agent)) return null;
  }
  const body = calls.map((call) =>
    lacking.includes(call) ? batchScopeMissing(call.message.id) : batchNeedsScopes(call.message.id),
  );
  return { ...insufficientScope(edge, step.scopes), body: JSON.stringify(body) };
}
