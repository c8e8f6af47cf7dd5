import {
  Agent,
  callerKey,
  type RateVerdict,
  Refused,
  sanitizeCorrelationId,
  Unauthorized,
  member,
} from '#core';
import {
  AuthenticationUnavailable,
  type CredentialSource,
  InsufficientScope,
  InvalidToken,
  type StepUp,
} from '#auth';
import { SharedStateUnavailable } from '#state';
import { faultLine, faultReport, isLegacyVersion } from '#dispatcher';
import { ACCEPTED_REPLY, isNotification, type Message, type Reply } from '../message.js';
import { formatJson } from '../sse/event-stream.js';
import { LIMITER_FAILED_RETRY, VERSION_HEADER } from './arrival-checks.js';
import type { SocketTurn } from './client-memory.js';
import type { EdgeDependencies } from './edge-dependencies.js';
import { type HttpExchange, headerText, type RequestCheck, type CheckVerdict } from './http-exchange.js';
import {
  AUTHENTICATION_UNAVAILABLE,
  bodyShareTaken,
  callerRefused,
  CLOSING,
  connectionBusy,
  internalError,
  NOT_A_MESSAGE,
  ROUTE_BUSY,
  scopeMissing,
  sessionNotFound,
  sessionRequired,
  tooManyRequests,
  unauthenticated,
} from './refusals.js';

const toChallengeHeaders = (challenge: string | undefined) =>
  challenge === undefined ? undefined : { 'WWW-Authenticate': challenge };

/** Of a service without OAuth: HTTP asks for a challenge with every 401 (RFC 9110, 11.6.1). */
const KEY_CHALLENGE = 'ApiKey realm="parley"';

/** The only answer to credentials that were not recognised, with a challenge. */
export function refuseUnauthorized(exchange: HttpExchange): Reply {
  const challenge = exchange.edge.authenticator.challengeTo(exchange) ?? KEY_CHALLENGE;
  return unauthenticated(null, toChallengeHeaders(challenge));
}

/** A known caller would be permitted more with these scopes. */
export function insufficientScope(
  { authenticator }: EdgeDependencies,
  scopes: readonly string[],
  id: unknown = null,
): Reply {
  return scopeMissing(id, toChallengeHeaders(authenticator.scopeChallenge(scopes)));
}

/** @returns null for what is no refusal of credentials. The reason is logged, never returned. */
function refuseCredentials(error: unknown, exchange: HttpExchange): Reply | null {
  const { edge } = exchange;
  if (error instanceof InsufficientScope) {
    edge.log.warn('Insufficient scope');
    return insufficientScope(edge, error.scopes);
  }
  if (error instanceof AuthenticationUnavailable) {
    edge.log.warn(faultLine('', error));
    return AUTHENTICATION_UNAVAILABLE;
  }
  if (error instanceof Refused) return callerRefused(error.refusal, exchange.message.id);
  if (!(error instanceof Unauthorized)) return null;
  edge.log.warn(error instanceof InvalidToken ? `Unauthorized: ${error.cause}` : 'Unauthorized');
  return refuseUnauthorized(exchange);
}

/** The parts of a request that identify the caller. */
export function readCredentials({ headers, request, verb, requestId }: HttpExchange): CredentialSource {
  return { headers, remoteAddress: request.socket.remoteAddress, method: verb, requestId };
}

export const authenticate: RequestCheck = {
  name: 'authenticate',
  check: async (exchange) => {
    const { edge } = exchange;
    try {
      exchange.agent = await edge.authenticator.authenticate(readCredentials(exchange));
      const { principal } = exchange.agent;
      edge.unread.own(exchange.response, principal);
      return exchange.heldBody?.own(principal) === false ? bodyShareTaken(exchange.message.id) : null;
    } catch (error) {
      const refused = refuseCredentials(error, exchange);
      if (refused) return refused;
      edge.log.warn(faultReport('authenticator failed:', error));
      return internalError();
    }
  },
};

/**
 * Only its owner may use a session; for any other caller its id grants nothing. An ended session is not found by its owner.
 */
async function useSession(exchange: HttpExchange, id: string): Promise<CheckVerdict> {
  const { edge } = exchange;
  const session = await edge.sessions.find(id);
  const owned = exchange.agent && session?.owner === exchange.agent.principal ? session : undefined;
  if (owned ? owned.terminated : edge.settings.sessions === 'strict') {
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
export const session: RequestCheck = {
  name: 'session',
  check: (exchange) => {
    const { edge } = exchange;
    if (exchange.era !== 'legacy') return null;
    const id = sanitizeCorrelationId(headerText(exchange.headers, 'mcp-session-id'));
    exchange.correlationId = id;
    if (exchange.message.method === 'initialize') return null;
    if (id !== undefined) return useSession(exchange, id);
    if (edge.settings.sessions !== 'strict') return null;
    return sessionRequired(exchange.message.id);
  },
};

/** The only revision whose clients may send several messages in one body. */
const BATCHING = '2025-03-26';

export const batchSession: RequestCheck = {
  name: 'batch-session',
  check: ({ batch, session }) => (batch && session?.version !== BATCHING ? NOT_A_MESSAGE : null),
};

/** A version in the request itself takes precedence over the negotiated one. */
export const spokenVersion: RequestCheck = {
  name: 'spoken-version',
  check: (exchange) => {
    if (exchange.era !== 'legacy') return null;
    const header = headerText(exchange.headers, VERSION_HEADER);
    if (isLegacyVersion(header)) exchange.version = header;
    return null;
  },
};

/** `ping` is free, and a tool call is counted by its agent's own limit. */
function isCounted({ method, params }: Message): boolean {
  if (method === 'ping') return false;
  return method !== 'tools/call' || typeof member(params, 'name') !== 'string';
}

/** @throws SharedStateUnavailable. A limiter that fails in any other way counts as exhausted. */
export async function spendRequest(
  { settings, log }: Pick<EdgeDependencies, 'settings' | 'log'>,
  principal: string,
): Promise<number | null> {
  let verdict: RateVerdict | null | undefined;
  try {
    verdict = await settings.requestLimiter?.check(principal);
  } catch (error) {
    if (error instanceof SharedStateUnavailable) throw error;
    log.warn(faultLine('the limiter of requests failed:', error));
    return LIMITER_FAILED_RETRY;
  }
  return verdict ? Math.max(1, Math.ceil(verdict.retryAfter)) : null;
}

/** Limits the requests of a principal besides tool calls: sessions, lists, streams, cancellations. */
export const requestLimit: RequestCheck = {
  name: 'request-limit',
  check: async (exchange) => {
    const { agent, batch, message, verb, edge } = exchange;
    if (!agent || !edge.settings.requestLimiter) return null;
    const messages = verb === 'POST' ? (batch ?? [message]).filter(isCounted).length : 1;
    for (let at = 0; at < messages; at += 1) {
      const wait = await spendRequest(edge, agent.principal);
      if (wait === null) continue;
      exchange.refusalsUntilLater += 1;
      return tooManyRequests(wait, message.id);
    }
    return null;
  },
};

/**
 * Accepts messages that need no answer: replies to requests to the client, and cancellations. Whether a call was waiting is
 * not returned.
 * @returns whether the message was one of these
 */
export function takeSilently(message: Message, exchange: HttpExchange): boolean {
  const { wire, log } = exchange.edge;
  const { agent, correlationId, session } = exchange;
  if (message.isResponse) {
    if (agent && session && correlationId !== undefined)
      wire.clientRequests
        .deliver({ owner: callerKey(agent), session: correlationId }, message)
        .catch((error: unknown) => log.warn(faultLine('a reply was lost:', error)));
    return true;
  }
  if (message.method !== 'notifications/cancelled') return false;
  const requestId = member(message.params, 'requestId');
  if (agent && correlationId !== undefined && requestId !== undefined && requestId !== null)
    wire.cancel({ owner: callerKey(agent), session: correlationId, requestId }, 'notifications_cancelled');
  return true;
}

/** Messages that are accepted without an answer; cancellation always is, so that it does not reveal which calls run. */
export const acknowledge: RequestCheck = {
  name: 'acknowledge',
  check: (exchange) => {
    const { era, message } = exchange;
    if (era === 'modern') return message.isResponse || message.id === undefined ? ACCEPTED_REPLY : null;
    return takeSilently(message, exchange) ? ACCEPTED_REPLY : null;
  },
};

/** Begins when the answers to earlier requests of the connection have been sent; cancellations and replies never wait. */
function createTurnCheck(busy: (id: unknown) => Reply): RequestCheck {
  return {
    name: 'turn',
    check: ({ request, response, message, edge }) => {
      const toVerdict = (turn: SocketTurn) =>
        turn === 'now' ? null : turn === 'busy' ? busy(message.id) : 'gone';
      const turn = edge.unread.turns.of(request, response);
      if (!(turn instanceof Promise)) return toVerdict(turn);
      // A request that waited when the service began to close is not started.
      return turn.then((settled) => (settled === 'now' && !edge.accepting ? CLOSING : toVerdict(settled)));
    },
  };
}

export const turn = createTurnCheck(connectionBusy);
export const fileTurn = createTurnCheck(() => ROUTE_BUSY);

/** The refusals of the gates that depend only on the agent. */
const GATE_CODES: ReadonlySet<unknown> = new Set(['permission_denied', 'tool_filtered', 'access_denied']);

type Definition = Agent['definition'];

/** Whether the gates that depend only on the agent pass a message; a message that is not a tool call always passes. */
function isPermitted({ method, params }: Message, edge: EdgeDependencies, agent: Agent): boolean {
  const name = member(params, 'name');
  if (method !== 'tools/call' || typeof name !== 'string') return true;
  return edge.kernel.permits(agent, name, member(params, 'arguments') ?? {});
}

/** The same caller, as the agent of another step. */
function isPermittedTo(
  definition: Definition,
  message: Message,
  edge: EdgeDependencies,
  { principal }: Agent,
): boolean {
  return isPermitted(message, edge, new Agent({ definition, principal }));
}

/**
 * The nearest scopes with which the caller's agent could make this call, when its own agent may not. A tool that none of
 * those agents can see is refused like any other.
 */
export function findStepUp(message: Message, edge: EdgeDependencies, agent: Agent): StepUp | null {
  if (message.method !== 'tools/call' || isNotification(message)) return null;
  const above = edge.authenticator.stepsAbove(agent);
  if (above.length === 0 || isPermitted(message, edge, agent)) return null;
  return above.find(({ definition }) => isPermittedTo(definition, message, edge, agent)) ?? null;
}

/**
 * Whether one of those gates refused, and not a limit before them. For a listed tool only its tier can be missing: any other
 * refusal, such as for a hidden class, is answered as if there were no scopes.
 */
export function isScopeRefusal(
  answer: Reply,
  { params }: Message,
  edge: EdgeDependencies,
  agent: Agent,
): boolean {
  const result = member(JSON.parse(formatJson(answer)), 'result');
  const code = member(member(result, '_meta'), 'parse.error_code');
  const isListed = edge.kernel.permits(agent, String(member(params, 'name')), {});
  return isListed ? code === 'permission_denied' : GATE_CODES.has(code);
}

/** The scopes that a batch lacks: one body has one status, and so one challenge. */
export interface BatchStepUp<Call> {
  readonly step: StepUp;
  /** The calls that are refused without it. */
  readonly lacking: readonly Call[];
}

/**
 * The nearest scopes that permit everything in the batch that scopes could permit, without a loss of what is permitted now;
 * null when no call lacks any, or no single step would suffice.
 */
export function findBatchStepUp<Call extends { readonly message: Message }>(
  calls: readonly Call[],
  edge: EdgeDependencies,
  agent: Agent,
): BatchStepUp<Call> | null {
  const lacking = calls.filter(({ message }) => findStepUp(message, edge, agent) !== null);
  if (lacking.length === 0) return null;
  const wanted = calls.filter((call) => lacking.includes(call) || isPermitted(call.message, edge, agent));
  const step = edge.authenticator
    .stepsAbove(agent)
    .find(({ definition }) => wanted.every(({ message }) => isPermittedTo(definition, message, edge, agent)));
  return step ? { step, lacking } : null;
}
