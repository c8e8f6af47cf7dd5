import { type Agent, isLogLevel } from '#agent';
import { type KernelReply, type KernelResult, knownCapabilities, member, StreamedResult } from '#dispatcher';
import type { Exchange } from '../exchange.js';
import type { Message } from '../message.js';
import { refusedByKernel } from '../http/refusals.js';
import { ACCEPTED, resultReply, type Reply } from '../reply.js';
import { headerText } from '../request-headers.js';
import { unauthorized } from '../rungs/caller.js';
import type { EdgeParts } from '../rungs/rung.js';
import { Call } from '../wire/call.js';
import type { Carrier } from './carrier.js';
import { dispatchContext } from './dispatch-context.js';
import { endingOf, FAILED, saidBy } from './told-message.js';

/** What came of a call: an answer, or one that stays open. */
export type Outcome = Reply | StreamedResult;

/** Runs one message of an exchange and words what came of it. */
export async function runCall(
  call: Call,
  exchange: Exchange,
  edge: EdgeParts,
  carrier: Carrier | null,
): Promise<Outcome> {
  const { era, version, clientCapabilities, session, correlationId } = exchange;
  const { wire, sessions } = edge;
  const own = session && correlationId !== undefined ? { session, id: correlationId } : null;
  const observed = exchange.observed?.message(saidBy(call, exchange, edge, own?.id));
  const context = dispatchContext({
    wire,
    call,
    carrier,
    speech: {
      era,
      version,
      clientCapabilities,
      logLevel: isLogLevel(session?.logLevel) ? session?.logLevel : undefined,
    },
    session: own?.id,
    setLogLevel:
      own && call.message.method === 'logging/setLevel'
        ? async (logLevel) => {
            await sessions.create({ ...own.session, logLevel, proposedId: own.id });
          }
        : undefined,
    parameterHeader:
      era === 'modern'
        ? (name) => headerText(exchange.headers, `mcp-param-${name.toLowerCase()}`)
        : undefined,
    telemetry: observed,
  });
  wire.calls.begin(call);
  try {
    const { method, params } = call.message;
    const dispatching = () => edge.kernel.dispatch(method, params, context);
    const reply = await (observed ? observed.within(dispatching) : dispatching());
    observed?.ends(exchange.isGone ? { outcome: 'gone' } : endingOf(reply));
    return reply instanceof StreamedResult ? reply : await worded(reply, call, exchange, edge, carrier);
  } finally {
    observed?.ends(FAILED);
    wire.calls.end(call);
  }
}

async function worded(
  reply: Exclude<KernelReply, StreamedResult>,
  { agent, message }: Call,
  exchange: Exchange,
  edge: EdgeParts,
  carrier: Carrier | null,
): Promise<Reply> {
  if ('accepted' in reply) return ACCEPTED;
  if ('error' in reply) {
    // A stream says who asked for what; a refused credential is told the same whatever was asked.
    if (reply.status === 401 && !carrier) return unauthorized(edge, exchange);
    return refusedByKernel(reply.status, reply.error, message.id);
  }
  if (message.method !== 'initialize') return resultReply(message.id, reply);
  const id = await openSession(exchange, edge, agent, reply);
  return resultReply(message.id, reply, { 'Mcp-Session-Id': id });
}

/** Opens the session that a successful `initialize` announces. */
async function openSession(
  { message, correlationId }: Exchange,
  { sessions }: EdgeParts,
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

/** The call that a message of an exchange becomes. */
export function callOf(agent: Agent, message: Message, { era, correlationId }: Exchange): Call {
  return new Call(agent, message, era === 'legacy' ? correlationId : undefined);
}
