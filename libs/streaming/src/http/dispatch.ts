import { filter, map } from 'rxjs';
import { type Agent, isLogLevel, McpRequest, member } from '#core';
import { SharedStateUnavailable } from '#state';
import {
  faultLine,
  StreamedResult,
  type KernelReply,
  type KernelResult,
  readCapabilities,
} from '#dispatcher';
import type { StepUp } from '#auth';
import { BatchAnswers } from '../batch-answers.js';
import {
  EdgeRequest,
  findEnding,
  INTERNAL_ERROR_ENDING,
  toMeasuredMessage,
  refusesUntilLater,
} from '../edge-request.js';
import {
  type Reply,
  isNotification,
  type Message,
  ACCEPTED_REPLY,
  resultReply,
  reply,
  toShownId,
} from '../message.js';
import { LIST_NOTICES } from '../sessions/listening-streams.js';
import { OpenAnswer } from '../sse/open-streams.js';
import {
  type EventStream,
  Heartbeat,
  ImmediateStream,
  formatJson,
  LateStream,
  readProgressToken,
  type ResponseStream,
} from '../sse/event-stream.js';
import { ResumableStream } from '../sse/resumable-stream.js';
import {
  type BatchStepUp,
  findBatchStepUp,
  readCredentials,
  insufficientScope,
  isScopeRefusal,
  findStepUp,
  takeSilently,
  refuseUnauthorized,
} from './caller-checks.js';
import type { EdgeDependencies } from './edge-dependencies.js';
import { type HttpExchange, type RequestCheck, type CheckVerdict, headerText } from './http-exchange.js';
import {
  internalError,
  notAcceptable,
  stateUnavailable,
  refusedByKernel,
  batchNeedsScopes,
  batchScopeMissing,
} from './refusals.js';
import { refuseStream } from './admission.js';

/** The first revision that is not frozen: its streams can be resumed and have only comments as heartbeats. */
const ADDITIONS = '2025-11-25';

/** The form of the answer to a request: a stream, or (null) one body. An edge without capacity refuses. */
function chooseResponseStream(exchange: HttpExchange, { principal }: Agent): ResponseStream | Reply | null {
  const { message, era, edge } = exchange;
  if (!exchange.takesEvents || isNotification(message)) return null;
  const noPlace = refuseStream(edge.counts.dispatchers, principal, message.id);
  if (noPlace) return noPlace;
  const stream = exchange.eventStream();
  if (era === 'modern')
    return new LateStream(
      stream,
      edge.keepAlives,
      (answer) => exchange.send(answer),
      new Heartbeat(readProgressToken(message.params)),
    );
  return legacyStream(exchange, stream);
}

function legacyStream(exchange: HttpExchange, stream: EventStream): ResponseStream {
  const { agent, message, version, session, correlationId } = exchange;
  const { keepAlives, wire } = exchange.edge;
  const late = version >= ADDITIONS;
  const heartbeat = new Heartbeat(readProgressToken(message.params));
  // The session's id stands in the headers, and is not known before the answer is.
  if (message.method !== 'initialize') stream.open();
  if (late && agent && session && correlationId !== undefined && message.method === 'tools/call')
    return new ResumableStream(
      stream,
      keepAlives,
      wire.resumption,
      { session: correlationId, agent },
      heartbeat,
    );
  const changes = wire.listChanges.follow(agent).pipe(map((list) => LIST_NOTICES[list]));
  // Later revisions require a message on one stream only: the listening stream, where there is one.
  const elsewhere = () => correlationId !== undefined && wire.listening.has(correlationId);
  return new ImmediateStream(stream, {
    keepAlives,
    heartbeat,
    listChanges: late ? changes.pipe(filter(() => !elsewhere())) : changes,
  });
}

/** The client disconnected: its work ends, unless the client may reconnect. */
function onGone(
  call: EdgeRequest,
  responseStream: ResponseStream | null,
  edge: EdgeDependencies,
  isRunning: () => boolean,
): void {
  if (responseStream?.leave()) return;
  const running = isRunning();
  call.abort('client_disconnect');
  if (running) edge.counts.abandonedDispatchers += 1;
  edge.onAbandoned({
    reason: 'client_disconnect',
    dispatcher_alive: running,
    request_id: toShownId(call.message.id),
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
  const leave = edge.counts.dispatchers.take(call.agent.principal);
  let outcome: Outcome;
  try {
    outcome = await runCall(call, exchange, responseStream);
  } catch (error) {
    edge.log.warn(faultLine('', error));
    outcome =
      error instanceof SharedStateUnavailable
        ? stateUnavailable(call.message.id)
        : internalError(call.message.id);
  } finally {
    leave();
  }
  if (outcome instanceof StreamedResult) {
    // From now on the open answer sends its own keep-alives.
    responseStream.leave();
    return keepOpen(outcome, call, exchange);
  }
  if (exchange.refusalsUntilLater > 0) await exchange.keepRefusalPace();
  const unanswered = call.reason === 'notifications_cancelled' && exchange.version >= '2025-11-25';
  if (unanswered) responseStream.drop();
  else responseStream.finish(outcome);
  return 'streamed';
}

function keepOpen(result: StreamedResult, call: EdgeRequest, exchange: HttpExchange): CheckVerdict {
  const { edge } = exchange;
  const { counts, openStreams, keepAlives, log } = edge;
  if (exchange.isGone) return 'gone';
  const { principal } = call.agent;
  const noPlace = refuseStream(counts.listeningStreams, principal, call.message.id);
  if (noPlace) return noPlace;
  const open = new OpenAnswer(call.message.id, result, exchange.eventStream(), keepAlives, log, () => {
    leave();
    openStreams.remove(open);
  });
  const leave = counts.listeningStreams.take(principal);
  openStreams.add(open, { agent: call.agent, credentials: readCredentials(exchange) });
  exchange.onGone = () => open.leave();
  open.begin();
  return 'streamed';
}

async function answer(exchange: HttpExchange, agent: Agent): Promise<CheckVerdict> {
  const { edge } = exchange;
  const stepUp = findStepUp(exchange.message, edge, agent);
  if (stepUp) return answerStepUp(stepUp, exchange, agent);
  const responseStream = chooseResponseStream(exchange, agent);
  if (responseStream && 'status' in responseStream) return responseStream;
  const call = createCall(agent, exchange.message, exchange);
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
    if (!agent) return refuseUnauthorized(exchange);
    return exchange.batch ? answerBatch(exchange.batch, exchange, agent) : answer(exchange, agent);
  },
};

/** The result of a call: an answer, or one that stays open. */
type Outcome = Reply | StreamedResult;

/** Runs one message of an exchange and creates its reply. */
async function runCall(
  call: EdgeRequest,
  exchange: HttpExchange,
  responseStream: ResponseStream | null,
): Promise<Outcome> {
  const { wire, kernel } = exchange.edge;
  const observed = exchange.observed?.message(toMeasuredMessage(call, exchange, call.sessionId));
  call.telemetry = observed;
  call.responseStream = responseStream;
  wire.calls.begin(call);
  try {
    const { agent, message } = call;
    const dispatch = () => kernel.dispatch(message.method, message.params, new McpRequest(agent, call));
    const reply = await (observed ? observed.within(dispatch) : dispatch());
    observed?.ends(exchange.isGone ? { outcome: 'gone' } : findEnding(reply));
    if (refusesUntilLater(reply)) exchange.refusalsUntilLater += 1;
    return reply instanceof StreamedResult ? reply : await toHttpReply(reply, call, exchange, responseStream);
  } finally {
    observed?.ends(INTERNAL_ERROR_ENDING);
    wire.calls.end(call);
  }
}

/** The HTTP answer to what the kernel replied. */
async function toHttpReply(
  reply: Exclude<KernelReply, StreamedResult>,
  { agent, message }: EdgeRequest,
  exchange: HttpExchange,
  responseStream: ResponseStream | null,
): Promise<Reply> {
  if ('accepted' in reply) return ACCEPTED_REPLY;
  if ('error' in reply) {
    // On a stream the error carries the request id; a refused credential gets one answer for all requests.
    if (reply.status === 401 && !responseStream) return refuseUnauthorized(exchange);
    if (reply.status === 503) return stateUnavailable(message.id);
    return refusedByKernel(reply.status, reply.error, message.id);
  }
  if (message.method !== 'initialize') return resultReply(message.id, reply);
  const id = await openSession(exchange, agent, reply);
  return resultReply(message.id, reply, { 'Mcp-Session-Id': id });
}

/** Opens the session that a successful `initialize` announces. */
async function openSession(
  { message, correlationId, edge: { sessions } }: HttpExchange,
  agent: Agent,
  { result }: KernelResult,
): Promise<string> {
  return sessions.create({
    owner: agent.principal,
    version: String(result.protocolVersion),
    capabilities: readCapabilities(member(message.params, 'capabilities')),
    ...(correlationId !== undefined && { proposedId: correlationId }),
  });
}

function createCall(agent: Agent, message: Message, exchange: HttpExchange): EdgeRequest {
  const { era, version, clientCapabilities, session, correlationId, edge, headers } = exchange;
  const own = session && correlationId !== undefined ? { session, id: correlationId } : null;
  const logLevel = session && isLogLevel(session.logLevel) ? session.logLevel : undefined;
  return new EdgeRequest(agent, {
    wire: edge.wire,
    message,
    label: era === 'legacy' ? correlationId : undefined,
    protocol: { era, version, clientCapabilities, logLevel },
    session: own?.id,
    setLogLevel:
      own && message.method === 'logging/setLevel'
        ? async (level) => {
            await edge.sessions.create({ ...own.session, logLevel: level, proposedId: own.id });
          }
        : undefined,
    httpRequestId: exchange.requestId,
    parameterHeader:
      era === 'modern' ? (name) => headerText(headers, `mcp-param-${name.toLowerCase()}`) : undefined,
  });
}

/** The call is still made, so that it is counted and recorded like every other refusal; only its answer differs. */
async function answerStepUp({ scopes }: StepUp, exchange: HttpExchange, agent: Agent): Promise<CheckVerdict> {
  const { message, edge } = exchange;
  const call = createCall(agent, message, exchange);
  exchange.onGone = () => call.abort('client_disconnect');
  if (exchange.isGone) exchange.onGone();
  const outcome = await runCall(call, exchange, null);
  if (exchange.isGone) return 'gone';
  if (!('body' in outcome) || isScopeRefusal(outcome, message, edge, agent))
    return insufficientScope(edge, scopes, message.id);
  return outcome;
}

/**
 * The 403 of a batch whose calls without scopes were made and refused; nothing else of it ran, because a client that returns
 * with the scopes sends all of it again.
 * @returns null when a limit before the gates refused: the batch is answered as any other
 */
function insufficientForBatch(
  { step, lacking }: BatchStepUp<EdgeRequest>,
  outcomes: ReadonlyMap<EdgeRequest, Outcome>,
  calls: readonly EdgeRequest[],
  edge: EdgeDependencies,
): Reply | null {
  for (const call of lacking) {
    const outcome = outcomes.get(call);
    if (!outcome || !('body' in outcome) || !isScopeRefusal(outcome, call.message, edge, call.agent))
      return null;
  }
  const errors = calls.map((call) =>
    formatJson(
      lacking.includes(call) ? batchScopeMissing(call.message.id) : batchNeedsScopes(call.message.id),
    ),
  );
  return { ...insufficientScope(edge, step.scopes), body: `[${errors.join(',')}]` };
}

/**
 * Answers each request of a batch, in the order of arrival; only notifications have no answer. Where scopes are missing, the
 * calls that lack them run first.
 */
async function answerBatch(
  batch: readonly Message[],
  exchange: HttpExchange,
  agent: Agent,
): Promise<CheckVerdict> {
  const { edge } = exchange;
  const requests = batch.filter((message) => !takeSilently(message, exchange) && !isNotification(message));
  if (requests.length === 0) return ACCEPTED_REPLY;
  const calls = requests.map((message) => createCall(agent, message, exchange));
  exchange.onGone = () => {
    for (const call of calls) call.abort('client_disconnect');
  };
  if (exchange.isGone) exchange.onGone();
  const stepUp = findBatchStepUp(calls, edge, agent);
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
  return reply(200, `[${calls.map((call) => formatAnswer(call, outcomes.get(call))).join(',')}]`);
}

function formatAnswer(call: EdgeRequest, outcome: Outcome | undefined): string {
  return formatJson(
    outcome === undefined || outcome instanceof StreamedResult ? internalError(call.message.id) : outcome,
  );
}
