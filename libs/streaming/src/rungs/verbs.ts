import { sanitizeCorrelationId } from '#agent';
import type { Exchange } from '../exchange.js';
import {
  INVALID_SESSION,
  METHOD_NOT_ALLOWED,
  MOUNTED_METHOD_NOT_ALLOWED,
  sessionRequired,
} from '../http/refusals.js';
import { NO_CONTENT, type Reply } from '../reply.js';
import { headerText } from '../request-headers.js';
import { customHeader, origin } from './browser-origin.js';
import { authenticate, unauthorized } from './caller.js';
import { openListening } from './listening.js';
import { requestLimit } from './request-limit.js';
import type { EdgeParts, Rung, RungVerdict } from './rung.js';

function methodNotAllowed({ settings }: EdgeParts): Reply {
  return settings.standalone ? METHOD_NOT_ALLOWED : MOUNTED_METHOD_NOT_ALLOWED;
}

/** Every check of a request to end a session, in their order. */
const ENDING: readonly Rung[] = [origin, customHeader, authenticate, requestLimit];

async function endSession(exchange: Exchange, edge: EdgeParts): Promise<RungVerdict> {
  const header = headerText(exchange.headers, 'mcp-session-id');
  if (header === undefined) return sessionRequired();
  const id = sanitizeCorrelationId(header);
  if (id === undefined) return INVALID_SESSION;
  for (const rung of ENDING) {
    const verdict = await rung.check(exchange, edge);
    if (verdict) return verdict;
  }
  const { agent } = exchange;
  if (!agent) return unauthorized(edge, exchange);
  const session = await edge.sessions.find(id);
  const isOwn = session?.owner === agent.principal;
  if (isOwn) await edge.sessions.terminate(id);
  await edge.wire.endSession({ session: id, owner: agent.principal, isOwn });
  return NO_CONTENT;
}

/**
 * Ends a session of the caller's. Known, unknown and foreign ids are answered alike, so the answer is no oracle; of an id that
 * is not the caller's only the calls end that the caller made under it.
 */
export const deleteSession: Rung = {
  name: 'delete',
  check: (exchange, edge) => (exchange.verb === 'DELETE' ? endSession(exchange, edge) : null),
};

/** A client that reads events gets a listening stream; any other learns that only POST is served. */
export const listen: Rung = {
  name: 'get',
  check: (exchange, edge) => {
    if (exchange.verb !== 'GET') return null;
    return exchange.takesEvents ? openListening(exchange, edge) : methodNotAllowed(edge);
  },
};

export const postOnly: Rung = {
  name: 'verb',
  check: ({ verb }, edge) => (verb === 'POST' ? null : methodNotAllowed(edge)),
};
