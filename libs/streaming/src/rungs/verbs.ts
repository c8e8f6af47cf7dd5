import { sanitizeCorrelationId } from '#agent';
import { RPC } from '#dispatcher';
import type { Exchange } from '../exchange.js';
import { errorReply, NO_CONTENT, type Reply } from '../reply.js';
import { headerText } from '../request-headers.js';
import { authenticate } from './caller.js';
import { openListening } from './listening.js';
import type { EdgeParts, Rung, RungVerdict } from './rung.js';

const MISSING_SESSION = errorReply(400, { code: RPC.invalidRequest, message: 'Missing Mcp-Session-Id' });
const INVALID_SESSION = errorReply(400, { code: RPC.invalidRequest, message: 'Invalid Mcp-Session-Id' });

const ALLOW = { Allow: 'POST' };
const MOUNTED_REFUSAL = errorReply(405, { code: RPC.parseError, message: 'method_not_allowed' }, null, ALLOW);
const STANDALONE_REFUSAL = errorReply(
  405,
  { code: RPC.invalidRequest, message: 'Method Not Allowed: only POST is accepted' },
  null,
  ALLOW,
);

function methodNotAllowed({ settings }: EdgeParts): Reply {
  return settings.standalone ? STANDALONE_REFUSAL : MOUNTED_REFUSAL;
}

async function endSession(exchange: Exchange, edge: EdgeParts): Promise<RungVerdict> {
  const header = headerText(exchange.headers, 'mcp-session-id');
  if (header === undefined) return MISSING_SESSION;
  const id = sanitizeCorrelationId(header);
  if (id === undefined) return INVALID_SESSION;
  if (edge.settings.authenticateDelete) {
    const refused = await authenticate.check(exchange, edge);
    if (refused) return refused;
    const session = await edge.sessions.find(id);
    if (session?.owner !== exchange.agent?.principal) return NO_CONTENT;
  }
  await edge.sessions.terminate(id);
  await edge.wire.endSession(id);
  return NO_CONTENT;
}

/** Ends a session. Known and unknown ids are answered alike, so the answer is no oracle. */
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
