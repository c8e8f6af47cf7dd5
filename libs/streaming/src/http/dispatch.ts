import type { Agent } from '#agent';
import { SharedStateUnavailable } from '#cluster';
import { faultLine, StreamedResult } from '#dispatcher';
import type { Call } from '../sessions/cancellation.js';
import { chooseCarrier, eventStream, isFull } from '../sse/choose-stream.js';
import { OpenAnswer } from '../sse/open-streams.js';
import type { Carrier } from '../sse/response-stream.js';
import { answerBatch } from './batch.js';
import { credentialsOf, unauthorized } from './caller-checks.js';
import type { EdgeParts } from './edge-dependencies.js';
import { type Exchange, type Rung, type RungVerdict } from './http-exchange.js';
import { internalError, notAcceptable, serverBusy, stateUnavailable } from './refusals.js';
import type { Reply } from './reply.js';
import { answerStepUp, callOf, type Outcome, runCall, stepUpOf } from './run-call.js';

const isReply = (chosen: Carrier | Reply | null): chosen is Reply => chosen !== null && 'status' in chosen;

/** The client is gone: what runs for it ends, unless it may come back. */
function onGone(call: Call, carrier: Carrier | null, edge: EdgeParts, isRunning: () => boolean): void {
  if (carrier?.left()) return;
  const running = isRunning();
  call.abort('client_disconnect');
  if (running) edge.counts.abandonedDispatchers += 1;
  edge.onAbandoned({
    reason: 'client_disconnect',
    dispatcher_alive: running,
    request_id: call.message.id ?? null,
  });
}

async function answerWhole(call: Call, exchange: Exchange): Promise<RungVerdict> {
  const outcome = await runCall(call, exchange, null);
  if (exchange.isGone) return 'gone';
  return outcome instanceof StreamedResult ? notAcceptable(call.message.id) : outcome;
}

async function answerStreaming(call: Call, exchange: Exchange, carrier: Carrier): Promise<RungVerdict> {
  const { edge } = exchange;
  edge.counts.dispatchers += 1;
  let outcome: Outcome;
  try {
    outcome = await runCall(call, exchange, carrier);
  } catch (fault) {
    edge.log.warn(faultLine('[McpEdge]', fault));
    outcome =
      fault instanceof SharedStateUnavailable
        ? stateUnavailable(call.message.id)
        : internalError(call.message.id);
  } finally {
    edge.counts.dispatchers -= 1;
  }
  if (outcome instanceof StreamedResult) {
    // From now on the answer says by itself that it is alive.
    carrier.left();
    return keepOpen(outcome, call, exchange);
  }
  const unanswered = call.abortedBecause === 'notifications_cancelled' && exchange.version >= '2025-11-25';
  if (unanswered) carrier.drop();
  else carrier.finish(outcome);
  return 'streamed';
}

function keepOpen(result: StreamedResult, call: Call, exchange: Exchange): RungVerdict {
  const { edge } = exchange;
  const { counts, openStreams, keepAlives, log } = edge;
  if (exchange.isGone) return 'gone';
  if (isFull(counts.listeningStreams, edge)) return serverBusy(call.message.id);
  const open = new OpenAnswer(call.message.id, result, eventStream(exchange), keepAlives, log, () => {
    counts.listeningStreams -= 1;
    openStreams.remove(open);
  });
  counts.listeningStreams += 1;
  openStreams.add(open, { agent: call.agent, credentials: credentialsOf(exchange) });
  exchange.onGone = () => open.left();
  open.begin();
  return 'streamed';
}

async function answer(exchange: Exchange, agent: Agent): Promise<RungVerdict> {
  const { edge } = exchange;
  const stepUp = stepUpOf(exchange.message, edge, agent);
  if (stepUp) return answerStepUp(stepUp, exchange, agent);
  const carrier = chooseCarrier(exchange);
  if (isReply(carrier)) return carrier;
  const call = callOf(agent, exchange.message, exchange);
  let running = true;
  exchange.onGone = () => onGone(call, carrier, edge, () => running);
  if (exchange.isGone) exchange.onGone();
  try {
    return await (carrier ? answerStreaming(call, exchange, carrier) : answerWhole(call, exchange));
  } finally {
    running = false;
  }
}

export const dispatch: Rung = {
  name: 'dispatch',
  check: (exchange) => {
    const { agent } = exchange;
    if (!agent) return unauthorized(exchange);
    return exchange.batch ? answerBatch(exchange.batch, exchange, agent) : answer(exchange, agent);
  },
};
