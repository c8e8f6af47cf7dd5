import { Agent, isLogLevel } from '#core';
import type { StepUp } from '#auth';
import { type KernelReply, type KernelResult, knownCapabilities, member, StreamedResult } from '#dispatcher';
import { EdgeRequest, endingOf, FAILED, measuredMessage } from '../edge-request.js';
import { isNotification, type Message } from '../message.js';
import { type ResponseStream, jsonOf } from '../sse/response-stream.js';
import { insufficientScope, unauthorized } from './caller-checks.js';
import type { EdgeDependencies } from './edge-dependencies.js';
import { type HttpExchange, headerText, type CheckVerdict } from './http-exchange.js';
import { refusedByKernel } from './refusals.js';
import { ACCEPTED, type Reply, resultReply } from './reply.js';

/** The result of a call: an answer, or one that stays open. */
export type Outcome = Reply | StreamedResult;

/** Runs one message of an exchange and creates its reply. */
export async function runCall(
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
export function callOf(agent: Agent, message: Message, exchange: HttpExchange): EdgeRequest {
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
export function isPermitted({ method, params }: Message, edge: EdgeDependencies, agent: Agent): boolean {
  const name = member(params, 'name');
  if (method !== 'tools/call' || typeof name !== 'string') return true;
  return edge.kernel.permits(agent, name, member(params, 'arguments') ?? {});
}

/** The same caller, as the agent of another step. */
export function isPermittedTo(
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
export function stepUpOf(message: Message, edge: EdgeDependencies, agent: Agent): StepUp | null {
  if (message.method !== 'tools/call' || isNotification(message)) return null;
  const above = edge.authenticator.stepsAbove(agent);
  if (above.length === 0 || isPermitted(message, edge, agent)) return null;
  return above.find(({ shape }) => isPermittedTo(shape, message, edge, agent)) ?? null;
}

/** The call is still made, so that it is counted and recorded like every other refusal; only its answer differs. */
export async function answerStepUp(
  { scopes }: StepUp,
  exchange: HttpExchange,
  agent: Agent,
): Promise<CheckVerdict> {
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
export function isScopeRefusal(
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
