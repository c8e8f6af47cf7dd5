import type { Agent } from '#core';
import { SharedStateUnavailable } from '#state';
import { faultLine, StreamedResult } from '#dispatcher';
import type { EdgeRequest } from '../edge-request.js';
import { chooseResponseStream, eventStream, isFull } from '../sse/choose-stream.js';
import { OpenAnswer } from '../sse/open-streams.js';
import type { ResponseStream } from '../sse/response-stream.js';
import { answerBatch } from './batch.js';
import { credentialsOf, unauthorized } from './caller-checks.js';
import type { EdgeDependencies } from './edge-dependencies.js';
import { type HttpExchange, type RequestCheck, type CheckVerdict } from './http-exchange.js';
import { internalError, notAcceptable, serverBusy, stateUnavailable } from './refusals.js';
import type { Reply } from './reply.js';
import { answerStepUp, callOf, type Outcome, runCall, stepUpOf } from './run-call.js';

const isReply = (chosen: ResponseStream | Reply | null): chosen is Reply =>
  chosen !== null && 'status' in chosen;

/** The client disconnected: its work ends, unless the client may reconnect. */
function onGone(
  call: EdgeRequest,
  responseStream: ResponseStream | null,
  edge: EdgeDependencies,
  isRunning: () => boolean,
): void {
  if (responseStream?.left()) return;
  const running = isRunning();
  call.abort('client_disconnect');
  if (running) edge.counts.abandonedDispatchers += 1;
  edge.onAbandoned({
    reason: 'client_disconnect',
    dispatcher_alive: running,
    request_id: call.message.id ?? null,
  });
}

async function answerWhole(call: EdgeRequest, exchange: HttpExchange): Promise<CheckVerdict> {
  const outcome = await runCall(call, exchange, null);
  if (exchange.isGone) return 'gone';
  return outcome instanceof StreamedResult ? notAcceptable(call.message.id) : outcome;
}

async function answerStreaming(
  call: EdgeRequest,
  exchange: HttpExchange,
  responseStream: ResponseStream,
): Promise<CheckVerdict> {
  const { edge } = exchange;
  edge.counts.dispatchers += 1;
  let outcome: Outcome;
  try {
    outcome = await runCall(call, exchange, responseStream);
  } catch (error) {
    edge.log.warn(faultLine('[McpEdge]', error));
    outcome =
      error instanceof SharedStateUnavailable
        ? stateUnavailable(call.message.id)
        : internalError(call.message.id);
  } finally {
    edge.counts.dispatchers -= 1;
  }
  if (outcome instanceof StreamedResult) {
    // From now on the open answer sends its own keep-alives.
    responseStream.left();
    return keepOpen(outcome, call, exchange);
  }
  const unanswered = call.abortedBecause === 'notifications_cancelled' && exchange.version >= '2025-11-25';
  if (unanswered) responseStream.drop();
  else responseStream.finish(outcome);
  return 'streamed';
}

function keepOpen(result: StreamedResult, call: EdgeRequest, exchange: HttpExchange): CheckVerdict {
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

async function answer(exchange: HttpExchange, agent: Agent): Promise<CheckVerdict> {
  const { edge } = exchange;
  const stepUp = stepUpOf(exchange.message, edge, agent);
  if (stepUp) return answerStepUp(stepUp, exchange, agent);
  const responseStream = chooseResponseStream(exchange);
  if (isReply(responseStream)) return responseStream;
  const call = callOf(agent, exchange.message, exchange);
  let running = true;
  exchange.onGone = () => onGone(call, responseStream, edge, () => running);
  if (exchange.isGone) exchange.onGone();
  try {
    return await (responseStream
      ? answerStreaming(call, exchange, responseStream)
      : answerWhole(call, exchange));
  } finally {
    running = false;
  }
}

export const dispatch: RequestCheck = {
  name: 'dispatch',
  check: (exchange) => {
    const { agent } = exchange;
    if (!agent) return unauthorized(exchange);
    return exchange.batch ? answerBatch(exchange.batch, exchange, agent) : answer(exchange, agent);
  },
};
