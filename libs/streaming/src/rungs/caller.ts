import { sanitizeCorrelationId, Unauthorized } from '#agent';
import { AuthenticationUnavailable, type CredentialSource, InsufficientScope, InvalidToken } from '#auth';
import { faultLine, isLegacyVersion } from '#dispatcher';
import type { Exchange } from '../exchange.js';
import {
  AUTHENTICATION_UNAVAILABLE,
  internalError,
  scopeMissing,
  sessionNotFound,
  sessionRequired,
  unauthenticated,
} from '../http/refusals.js';
import type { Reply } from '../reply.js';
import { headerText } from '../request-headers.js';
import { VERSION_HEADER } from './protocol-era.js';
import type { EdgeParts, Rung, RungVerdict } from './rung.js';

const challenging = (challenge: string | undefined) =>
  challenge === undefined ? undefined : { 'WWW-Authenticate': challenge };

/** The one answer to credentials that were not recognised, with the challenge where there is one. */
export function unauthorized({ authenticator }: EdgeParts, request: Pick<Exchange, 'headers'>): Reply {
  return unauthenticated(null, challenging(authenticator.challengeTo(request)));
}

/** A caller is known and would be let further with these scopes. */
export function insufficientScope(
  { authenticator }: EdgeParts,
  scopes: readonly string[],
  id: unknown = null,
): Reply {
  return scopeMissing(id, challenging(authenticator.scopeChallenge(scopes)));
}

/** @returns null for what is no refusal of credentials. The caller is told no reason; the log is. */
function refusedCredentials(
  fault: unknown,
  edge: EdgeParts,
  request: Pick<Exchange, 'headers'>,
): Reply | null {
  if (fault instanceof InsufficientScope) {
    edge.log.warn('[McpEdge] Insufficient scope');
    return insufficientScope(edge, fault.scopes);
  }
  if (fault instanceof AuthenticationUnavailable) {
    edge.log.warn(faultLine('[McpEdge]', fault));
    return AUTHENTICATION_UNAVAILABLE;
  }
  if (!(fault instanceof Unauthorized)) return null;
  edge.log.warn(
    fault instanceof InvalidToken ? `[McpEdge] Unauthorized: ${fault.cause}` : '[McpEdge] Unauthorized',
  );
  return unauthorized(edge, request);
}

/** What a request shows of who is calling. */
export function credentialsOf({ headers, request, verb }: Exchange): CredentialSource {
  return { headers, remoteAddress: request.socket.remoteAddress, method: verb };
}

export const authenticate: Rung = {
  name: 'authenticate',
  check: async (exchange, edge) => {
    try {
      exchange.agent = await edge.authenticator.authenticate(credentialsOf(exchange));
      edge.unread.own(exchange.response, exchange.agent.principal);
      return null;
    } catch (fault) {
      const refused = refusedCredentials(fault, edge, exchange);
      if (refused) return refused;
      edge.log.warn(faultLine('[McpEdge] authenticator failed:', fault));
      return internalError();
    }
  },
};

/** Only its owner may use a session; for anybody else its id is a label. An ended one is not found by its owner. */
async function useSession(exchange: Exchange, edge: EdgeParts, id: string): Promise<RungVerdict> {
  const session = await edge.sessions.find(id);
  const owned = session?.owner === exchange.agent?.principal ? session : undefined;
  if (owned ? owned.terminated : edge.settings.strictSessions) {
    return sessionNotFound(exchange.message.id);
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
    return sessionRequired(exchange.message.id);
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
