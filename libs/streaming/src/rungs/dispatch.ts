import type { Agent } from '#agent';
import { type DispatchContext, isJsonObject, type KernelResult, member, StreamedResult } from '#dispatcher';
import type { Exchange } from '../exchange.js';
import { ACCEPTED, errorReply, internalErrorReply, resultReply, type Reply } from '../reply.js';
import { headerText } from '../request-headers.js';
import { unauthorized } from './caller.js';
import type { EdgeParts, Rung } from './rung.js';

/** A JSON answer has no room for progress. */
const ignoreProgress = (): void => undefined;

/** Messages that are taken without an answer; cancellation always is, so that it tells nobody what is running. */
export const acknowledge: Rung = {
  name: 'acknowledge',
  check: ({ era, message }) => {
    if (message.isResponse || message.method === 'notifications/cancelled') return ACCEPTED;
    return era === 'modern' && message.id === undefined ? ACCEPTED : null;
  },
};

/** Opens the session that a successful `initialize` announces. */
async function openSession(
  exchange: Exchange,
  { sessions }: EdgeParts,
  owner: string,
  { result }: KernelResult,
): Promise<string> {
  const declared = member(exchange.message.params, 'capabilities');
  return sessions.create({
    owner,
    version: String(result.protocolVersion),
    capabilities: isJsonObject(declared) ? declared : {},
    ...(exchange.correlationId !== undefined && { proposedId: exchange.correlationId }),
  });
}

/** What the kernel is told of an exchange. */
function contextOf(exchange: Exchange, agent: Agent): DispatchContext {
  const { message, era, version, clientCapabilities, correlationId, sessionId } = exchange;
  return {
    agent,
    era,
    version,
    clientCapabilities,
    // An own getter: most answers never ask for the signal, and a copy of this context still has it.
    get signal() {
      return exchange.signal;
    },
    progress: ignoreProgress,
    ...(correlationId !== undefined && { correlationId }),
    ...(sessionId !== undefined && { sessionId }),
    ...(message.id !== undefined && { requestId: message.id }),
    ...(era === 'modern' && {
      parameterHeader: (name: string) => headerText(exchange.headers, `mcp-param-${name.toLowerCase()}`),
    }),
  };
}

async function answer(exchange: Exchange, edge: EdgeParts): Promise<Reply | 'gone' | null> {
  const { agent, message } = exchange;
  if (!agent) return unauthorized(edge);
  const context = contextOf(exchange, agent);
  const outcome = await edge.kernel.dispatch(message.method, message.params, context);
  if (exchange.response.destroyed) return 'gone';
  if ('accepted' in outcome) return ACCEPTED;
  if (outcome instanceof StreamedResult) return internalErrorReply(message.id);
  if ('error' in outcome) {
    if (outcome.status === 401) return unauthorized(edge);
    return errorReply(outcome.status, outcome.error, message.id);
  }
  if (message.method !== 'initialize') return resultReply(message.id, outcome);
  const sessionId = await openSession(exchange, edge, agent.principal, outcome);
  return resultReply(message.id, outcome, { 'Mcp-Session-Id': sessionId });
}

export const dispatch: Rung = { name: 'dispatch', check: answer };
