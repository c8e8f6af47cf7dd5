import { sanitizeCorrelationId, Unauthorized } from '#agent';
import { faultLine, isLegacyVersion, RPC } from '#dispatcher';
import type { Exchange } from '../exchange.js';
import { errorReply, internalErrorReply, type Reply } from '../reply.js';
import { headerText } from '../request-headers.js';
import { VERSION_HEADER } from './protocol-era.js';
import type { EdgeParts, Rung, RungVerdict } from './rung.js';

const UNAUTHORIZED = { code: RPC.unauthorized, message: 'Unauthorized' };

/** The one answer to credentials that were not recognised, with the challenge where there is one. */
export function unauthorized({ authenticator }: EdgeParts): Reply {
  const { challenge } = authenticator;
  return errorReply(401, UNAUTHORIZED, null, challenge ? { 'WWW-Authenticate': challenge } : undefined);
}

export const authenticate: Rung = {
  name: 'authenticate',
  check: async (exchange, edge) => {
    try {
      exchange.agent = await edge.authenticator.authenticate({
        headers: exchange.headers,
        remoteAddress: exchange.request.socket.remoteAddress,
        method: exchange.verb,
      });
      return null;
    } catch (fault) {
      if (fault instanceof Unauthorized) {
        edge.log.warn('[McpEdge] Unauthorized');
        return unauthorized(edge);
      }
      edge.log.warn(faultLine('[McpEdge] authenticator failed:', fault));
      return internalErrorReply();
    }
  },
};

export function sessionNotFound({ message }: Exchange): Reply {
  return errorReply(404, { code: RPC.unauthorized, message: 'Session not found' }, message.id);
}

/** Only its owner may use a session; for anybody else its id is a label. An ended one is not found by its owner. */
async function useSession(exchange: Exchange, edge: EdgeParts, id: string): Promise<RungVerdict> {
  const session = await edge.sessions.find(id);
  const owned = session?.owner === exchange.agent?.principal ? session : undefined;
  if (owned ? owned.terminated : edge.settings.strictSessions) {
    return sessionNotFound(exchange);
  }
  if (owned) {
    exchange.session = owned;
    exchange.version = owned.version;
    exchange.clientCapabilities = owned.capabilities;
  }
  return null;
}

/** Adopts the session of a legacy message. The stateless era has none, and `initialize` only opens one. */
export const session: Rung = {
  name: 'session',
  check: (exchange, edge) => {
    if (exchange.era !== 'legacy') return null;
    const id = sanitizeCorrelationId(headerText(exchange.headers, 'mcp-session-id'));
    exchange.correlationId = id;
    if (exchange.message.method === 'initialize') return null;
    if (id !== undefined) return useSession(exchange, edge, id);
    if (!edge.settings.strictSessions) return null;
    const message = 'Missing Mcp-Session-Id';
    return errorReply(400, { code: RPC.invalidRequest, message }, exchange.message.id);
  },
};

/** A version named by the request itself outranks the negotiated one. */
export const spokenVersion: Rung = {
  name: 'spoken-version',
  check: (exchange) => {
    if (exchange.era !== 'legacy') return null;
    const header = headerText(exchange.headers, VERSION_HEADER);
    if (isLegacyVersion(header)) exchange.version = header;
    return null;
  },
};
