import type { Agent } from '#agent';
import { StreamedResult } from '#dispatcher';
import { callOf, type Outcome, runCall } from '../answers/answer-call.js';
import { BatchAnswers } from '../answers/batch-answers.js';
import { jsonOf } from '../answers/carrier.js';
import type { Exchange } from '../exchange.js';
import { isNotification, type Message, readMessage } from '../message.js';
import { internalError, NOT_A_MESSAGE } from '../http/refusals.js';
import { ACCEPTED, reply } from '../reply.js';
import { headerText } from '../request-headers.js';
import type { Call } from '../wire/call.js';
import { takeSilently } from './acknowledge.js';
import { batchStepUpOf, insufficientForBatch } from './batch-step-up.js';
import { claimedVersion } from './protocol-era.js';
import type { EdgeParts, Rung, RungVerdict } from './rung.js';

/** The only revision whose clients may send several messages in one body. */
const BATCHING = '2025-03-26';

/** Without a session there is no revision that has batches: nobody needs to be asked who is calling. */
export function mayHoldBatch({ headers }: Exchange): boolean {
  return headerText(headers, 'mcp-session-id') !== undefined;
}

/** Several messages, none of which opens a session or speaks for another era; `null` when one is not of that kind. */
export function readBatch(values: readonly unknown[], limit: number): Message[] | null {
  if (values.length === 0 || values.length > limit) return null;
  const messages: Message[] = [];
  for (const value of values) {
    const message = readMessage(value);
    if (!message || message.method === 'initialize' || claimedVersion(message) !== undefined) return null;
    messages.push(message);
  }
  return messages;
}

export const batchSession: Rung = {
  name: 'batch-session',
  check: ({ batch, session }) => (batch && session?.version !== BATCHING ? NOT_A_MESSAGE : null),
};

/**
 * Answers each request of a batch, in the order they came in; nothing but notifications is taken without an answer. Where
 * scopes are missing, what lacks them is tried first.
 */
export async function answerBatch(
  batch: readonly Message[],
  exchange: Exchange,
  edge: EdgeParts,
  agent: Agent,
): Promise<RungVerdict> {
  const requests = batch.filter(
    (message) => !takeSilently(message, exchange, edge) && !isNotification(message),
  );
  if (requests.length === 0) return ACCEPTED;
  const calls = requests.map((message) => callOf(agent, message, exchange));
  exchange.onGone = () => {
    for (const call of calls) call.abort('client_disconnect');
  };
  if (exchange.isGone) exchange.onGone();
  const stepUp = batchStepUpOf(calls, edge, agent);
  const answers = new BatchAnswers();
  const run = (some: readonly Call[]) =>
    answers.run<Call, Outcome>(
      some,
      ({ message }) => message,
      (call) => runCall(call, exchange, edge, null),
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

function answerOf(call: Call, outcome: Outcome | undefined): string {
  return jsonOf(
    outcome === undefined || outcome instanceof StreamedResult ? internalError(call.message.id) : outcome,
  );
}
