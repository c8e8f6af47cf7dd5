import { Agent, isLogLevel } from '#core';
import { SharedStateUnavailable } from '#state';
import {
  faultLine,
  StreamedResult,
  type KernelReply,
  type KernelResult,
  knownCapabilities,
  member,
} from '#dispatcher';
import type { StepUp } from '#auth';
import { EdgeRequest, endingOf, FAILED, measuredMessage } from '../edge-request.js';
import { chooseResponseStream, eventStream, isFull } from '../sse/choose-stream.js';
import { OpenAnswer } from '../sse/open-streams.js';
import { type ResponseStream, jsonOf } from '../sse/event-stream.js';
import { credentialsOf, unauthorized, insufficientScope, takeSilently } from './caller-checks.js';
import type { EdgeDependencies } from './edge-dependencies.js';
import { type HttpExchange, type RequestCheck, type CheckVerdict, headerText } from './http-exchange.js';
import {
  internalError,
  notAcceptable,
  serverBusy,
  stateUnavailable,
  refusedByKernel,
  batchNeedsScopes,
  batchScopeMissing,
} from './refusals.js';
import { type Reply, isNotification, type Message, ACCEPTED, resultReply, reply } from '../message.js';
import { BatchAnswers } from '../batch-answers.js';

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

/** The result of a call: an answer, or one that stays open. */
type Outcome = Reply | StreamedResult;

/** Runs one message of an exchange and creates its reply. */
async function runCall(
  call: EdgeRequest,
  exchange: HttpExchange,
  responseStream: ResponseStream | null,
): Promise<Outcome> {
  const { wire, kernel } = exchange.edge;
  const observed = exchange.observed?.message(measuredMessage(call, exchange, call.sessionId));
  call.telemetry = observed;
  call.responseStream = responseStream;
  wire.calls.begin(call);
  try {
    const { method, params } = call.message;
    const reply = await (observed
      ? observed.within(() => kernel.dispatch(method, params, call))
      : kernel.dispatch(method, params, call));
    observed?.ends(exchange.isGone ? { outcome: 'gone' } : endingOf(reply));
    return reply instanceof StreamedResult ? reply : await worded(reply, call, exchange, responseStream);
  } finally {
    observed?.ends(FAILED);
    wire.calls.end(call);
  }
}

async function worded(
  reply: Exclude<KernelReply, StreamedResult>,
  { agent, message }: EdgeRequest,
  exchange: HttpExchange,
  responseStream: ResponseStream | null,
): Promise<Reply> {
  if ('accepted' in reply) return ACCEPTED;
  if ('error' in reply) {
    // On a stream the error carries the request id; a refused credential gets one answer for all requests.
    if (reply.status === 401 && !responseStream) return unauthorized(exchange);
    return refusedByKernel(reply.status, reply.error, message.id);
  }
  if (message.method !== 'initialize') return resultReply(message.id, reply);
  const id = await openSession(exchange, agent, reply);
  return resultReply(message.id, reply, { 'Mcp-Session-Id': id });
}

/** Opens the session that a successful `initialize` announces. */
async function openSession(
  { message, correlationId, edge: { sessions } }: HttpExchange,
  { principal: owner }: Agent,
  { result }: KernelResult,
): Promise<string> {
  return sessions.create({
    owner,
    version: String(result.protocolVersion),
    capabilities: knownCapabilities(member(message.params, 'capabilities')),
    ...(correlationId !== undefined && { proposedId: correlationId }),
  });
}

/** The call in a message of an exchange. */
function callOf(agent: Agent, message: Message, exchange: HttpExchange): EdgeRequest {
  const { era, version, clientCapabilities, session, correlationId, edge, headers } = exchange;
  const own = session && correlationId !== undefined ? { session, id: correlationId } : null;
  const logLevel = isLogLevel(session?.logLevel) ? session?.logLevel : undefined;
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
    parameterHeader:
      era === 'modern' ? (name) => headerText(headers, `mcp-param-${name.toLowerCase()}`) : undefined,
  });
}

/** The refusals of the gates that depend only on the agent. */
const GATE_CODES: ReadonlySet<unknown> = new Set(['permission_denied', 'tool_filtered', 'access_denied']);

type Shape = Agent['shape'];

/** Whether the gates that depend only on the agent pass a message; a message that is not a tool call always passes. */
function isPermitted({ method, params }: Message, edge: EdgeDependencies, agent: Agent): boolean {
  const name = member(params, 'name');
  if (method !== 'tools/call' || typeof name !== 'string') return true;
  return edge.kernel.permits(agent, name, member(params, 'arguments') ?? {});
}

/** The same caller, as the agent of another step. */
function isPermittedTo(
  shape: Shape,
  message: Message,
  edge: EdgeDependencies,
  { principal }: Agent,
): boolean {
  return isPermitted(message, edge, new Agent({ shape, principal }));
}

/**
 * The nearest scopes with which the caller's agent could make this call, when its own agent may not. A tool that none of
 * those agents can see is refused like any other.
 */
function stepUpOf(message: Message, edge: EdgeDependencies, agent: Agent): StepUp | null {
  if (message.method !== 'tools/call' || isNotification(message)) return null;
  const above = edge.authenticator.stepsAbove(agent);
  if (above.length === 0 || isPermitted(message, edge, agent)) return null;
  return above.find(({ shape }) => isPermittedTo(shape, message, edge, agent)) ?? null;
}

/** The call is still made, so that it is counted and recorded like every other refusal; only its answer differs. */
async function answerStepUp({ scopes }: StepUp, exchange: HttpExchange, agent: Agent): Promise<CheckVerdict> {
  const { message, edge } = exchange;
  const call = callOf(agent, message, exchange);
  exchange.onGone = () => call.abort('client_disconnect');
  if (exchange.isGone) exchange.onGone();
  const outcome = await runCall(call, exchange, null);
  if (exchange.isGone) return 'gone';
  if (!('body' in outcome) || isScopeRefusal(outcome, message, edge, agent))
    return insufficientScope(edge, scopes, message.id);
  return outcome;
}

/**
 * Whether one of those gates refused, and not a limit before them. For a listed tool only its tier can be missing: any other
 * refusal, such as for a hidden class, is answered as if there were no scopes.
 */
function isScopeRefusal(
  outcome: Outcome,
  { params }: Message,
  edge: EdgeDependencies,
  agent: Agent,
): boolean {
  if (!('body' in outcome)) return false;
  const result = member(JSON.parse(jsonOf(outcome)), 'result');
  const code = member(member(result, '_meta'), 'parse.error_code');
  const isListed = edge.kernel.permits(agent, String(member(params, 'name')), {});
  return isListed ? code === 'permission_denied' : GATE_CODES.has(code);
}

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
async function answerBatch(
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
