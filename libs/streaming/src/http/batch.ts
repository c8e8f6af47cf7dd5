import type { Agent } from '#core';
import type { StepUp } from '#auth';
import { StreamedResult } from '#dispatcher';
import { BatchAnswers } from '../batch-answers.js';
import type { EdgeRequest } from '../edge-request.js';
import { isNotification, type Message } from '../message.js';
import { jsonOf } from '../sse/response-stream.js';
import { insufficientScope, takeSilently } from './caller-checks.js';
import type { EdgeDependencies } from './edge-dependencies.js';
import type { HttpExchange, CheckVerdict } from './http-exchange.js';
import { batchNeedsScopes, batchScopeMissing, internalError } from './refusals.js';
import { ACCEPTED, type Reply, reply } from './reply.js';
import {
  callOf,
  isPermitted,
  isPermittedTo,
  isScopeRefusal,
  type Outcome,
  runCall,
  stepUpOf,
} from './run-call.js';

/** The scopes that a batch lacks: one body has one status, and so one challenge. */
interface BatchStepUp {
  readonly step: StepUp;
  /** The calls that are refused without it. */
  readonly lacking: readonly EdgeRequest[];
}

/**
 * The nearest scopes that permit everything in the batch that scopes could permit, without a loss of what is permitted now;
 * null when no call lacks any, or no single step would suffice.
 */
function batchStepUpOf(
  calls: readonly EdgeRequest[],
  edge: EdgeDependencies,
  agent: Agent,
): BatchStepUp | null {
  const lacking = calls.filter(({ message }) => stepUpOf(message, edge, agent) !== null);
  if (lacking.length === 0) return null;
  const wanted = calls.filter((call) => lacking.includes(call) || isPermitted(call.message, edge, agent));
  const step = edge.authenticator
    .stepsAbove(agent)
    .find(({ shape }) => wanted.every(({ message }) => isPermittedTo(shape, message, edge, agent)));
  return step ? { step, lacking } : null;
}

/**
 * The 403 of a batch whose calls without scopes were made and refused; nothing else of it ran, because a client that returns
 * with the scopes sends all of it again.
 * @returns null when a limit before the gates refused: the batch is answered as any other
 */
function insufficientForBatch(
  { step, lacking }: BatchStepUp,
  outcomes: ReadonlyMap<EdgeRequest, Outcome>,
  calls: readonly EdgeRequest[],
  edge: EdgeDependencies,
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

/**
 * Answers each request of a batch, in the order of arrival; only notifications have no answer. Where scopes are missing, the
 * calls that lack them run first.
 */
export async function answerBatch(
  batch: readonly Message[],
  exchange: HttpExchange,
  agent: Agent,
): Promise<CheckVerdict> {
  const { edge } = exchange;
  const requests = batch.filter((message) => !takeSilently(message, exchange) && !isNotification(message));
  if (requests.length === 0) return ACCEPTED;
  const calls = requests.map((message) => callOf(agent, message, exchange));
  exchange.onGone = () => {
    for (const call of calls) call.abort('client_disconnect');
  };
  if (exchange.isGone) exchange.onGone();
  const stepUp = batchStepUpOf(calls, edge, agent);
  const answers = new BatchAnswers();
  const run = (some: readonly EdgeRequest[]) =>
    answers.run<EdgeRequest, Outcome>(
      some,
      ({ message }) => message,
      (call) => runCall(call, exchange, null),
    );
  const outcomes = new Map(stepUp ? await run(stepUp.lacking) : []);
  if (exchange.isGone) return 'gone';
  const refused = stepUp && insufficientForBatch(stepUp, outcomes, calls, edge);
  if (refused) return refused;
  const others = calls.filter((call) => !outcomes.has(call));
  for (const [call, outcome] of await run(others)) outcomes.set(call, outcome);
  if (exchange.isGone) return 'gone';
  return reply(200, `[${calls.map((call) => answerOf(call, outcomes.get(call))).join(',')}]`);
}

function answerOf(call: EdgeRequest, outcome: Outcome | undefined): string {
  return jsonOf(
    outcome === undefined || outcome instanceof StreamedResult ? internalError(call.message.id) : outcome,
  );
}
