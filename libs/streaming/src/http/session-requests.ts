import { type Agent, callerKey, sanitizeCorrelationId } from '#core';
import { isLegacyVersion } from '#dispatcher';
import { ListeningStream, type OpenStream } from '../sse/open-streams.js';
import { ReturnedStream } from '../sse/resumable-stream.js';
import { customHeader, forMethod, legacyVersion, origin, VERSION_HEADER } from './arrival-checks.js';
import { authenticate, readCredentials, requestLimit, turn, refuseUnauthorized } from './caller-checks.js';
import { onceClosed } from './client-memory.js';
import { type HttpExchange, headerText, type RequestCheck, type CheckVerdict } from './http-exchange.js';
import {
  FOREIGN_SESSION,
  INVALID_SESSION,
  METHOD_NOT_ALLOWED,
  NO_SESSION,
  sessionNotFound,
  sessionRequired,
  UNKNOWN_EVENT,
} from './refusals.js';
import { refuseStream } from './admission.js';
import { NO_CONTENT } from '../message.js';

/** The first revision whose events have ids. */
const WITH_EVENT_IDS = '2025-11-25';

/**
 * Finds the session of a stream. An unknown one, such as one from before a restart, is not found in either mode: a client that reopens
 * its stream learns that its subscriptions are gone, and begins a new session.
 */
const ownSession: RequestCheck = {
  name: 'own-session',
  check: async (exchange) => {
    const { sessions, settings } = exchange.edge;
    const { agent, headers } = exchange;
    const id = sanitizeCorrelationId(headerText(headers, 'mcp-session-id'));
    // Clients of HTTP+SSE take 404 and 405 alone for a server that does not speak it.
    if (id === undefined && headers['mcp-session-id'] === undefined) return METHOD_NOT_ALLOWED;
    if (id === undefined || !agent) return NO_SESSION;
    exchange.correlationId = id;
    const named = headerText(headers, VERSION_HEADER);
    const known = await sessions.find(id);
    // In strict mode a foreign session is answered as an unknown one.
    const isForeign = known !== undefined && known.owner !== agent.principal;
    if (!known || known.terminated || (isForeign && settings.sessions === 'strict'))
      return sessionNotFound(exchange.message.id);
    if (isForeign) return FOREIGN_SESSION;
    exchange.session = known;
    exchange.version = isLegacyVersion(named) ? named : known.version;
    return null;
  },
};

const streamRoom: RequestCheck = {
  name: 'room',
  check: ({ edge, agent }) => agent && refuseStream(edge.counts.listeningStreams, agent.principal, null),
};

/** Every check of a request for a listening stream, in their order. */
const LISTENING_CHECKS: readonly RequestCheck[] = [
  origin,
  customHeader,
  legacyVersion,
  authenticate,
  requestLimit,
  ownSession,
  turn,
  streamRoom,
];

async function openListening(exchange: HttpExchange): Promise<CheckVerdict> {
  const { edge } = exchange;
  for (const requestCheck of LISTENING_CHECKS) {
    const verdict = await requestCheck.check(exchange);
    if (verdict) return verdict;
  }
  const { agent, correlationId: session } = exchange;
  if (!agent || session === undefined) return refuseUnauthorized(exchange);
  if (exchange.isGone) return 'gone';
  const eventId = headerText(exchange.headers, 'last-event-id');
  if (eventId !== undefined && exchange.version >= WITH_EVENT_IDS)
    return resume(eventId, session, agent, exchange);

  const stream = new ListeningStream(exchange.eventStream(), edge.keepAlives);
  // Only the counter of the stream ends it: a stream that was replaced is open until its response is closed.
  count(stream, agent, exchange, () => {
    stream.close();
    edge.wire.listening.detach(session, stream);
  });
  stream.open();
  edge.wire.listening.attach(session, agent, stream);
  return 'streamed';
}

/** Resumes one stream after the last event that its client received, and sends nothing else. */
async function resume(
  eventId: string,
  session: string,
  agent: Agent,
  exchange: HttpExchange,
): Promise<CheckVerdict> {
  const { edge } = exchange;
  const { resumption } = edge.wire;
  const place = resumption.findPlace({ session, agent }, eventId);
  const missed = place && (await resumption.readAfter(place));
  if (!place || !missed) return UNKNOWN_EVENT;
  if (exchange.isGone) return 'gone';
  const noPlace = refuseStream(edge.counts.listeningStreams, agent.principal, null);
  if (noPlace) return noPlace;
  const events = exchange.eventStream();
  const stream = new ReturnedStream(events, edge.keepAlives, resumption, place);
  count(stream, agent, exchange, () => stream.end());
  events.open();
  stream.begin(missed);
  return 'streamed';
}

/** Counts a stream until its response is closed by either side. */
function count(stream: OpenStream, agent: Agent, exchange: HttpExchange, onClosed: () => void): void {
  const { edge } = exchange;
  const { counts, openStreams } = edge;
  const leave = counts.listeningStreams.take(agent.principal);
  openStreams.add(stream, { agent, credentials: readCredentials(exchange) });
  onceClosed(exchange.request, exchange.response, () => {
    leave();
    openStreams.remove(stream);
    onClosed();
  });
}

/** Every check of a request to end a session, in their order. */
const ENDING_CHECKS: readonly RequestCheck[] = [origin, customHeader, authenticate, requestLimit];

async function endSession(exchange: HttpExchange): Promise<CheckVerdict> {
  const { edge } = exchange;
  const header = headerText(exchange.headers, 'mcp-session-id');
  if (header === undefined) return sessionRequired();
  const id = sanitizeCorrelationId(header);
  if (id === undefined) return INVALID_SESSION;
  for (const requestCheck of ENDING_CHECKS) {
    const verdict = await requestCheck.check(exchange);
    if (verdict) return verdict;
  }
  const { agent } = exchange;
  if (!agent) return refuseUnauthorized(exchange);
  const session = await edge.sessions.find(id);
  const isOwn = session?.owner === agent.principal;
  if (isOwn) await edge.sessions.terminate(id);
  await edge.wire.endSession({ session: id, owner: isOwn ? agent.principal : callerKey(agent), isOwn });
  return NO_CONTENT;
}

/**
 * Ends a session of the caller. Known, unknown and foreign ids are answered alike, so the answer is no oracle; for an id of
 * another owner only the calls end that the caller made under it.
 */
export const deleteSession = forMethod('delete', 'DELETE', endSession);

/** A client that accepts events gets a listening stream; any other receives the answer that only POST is served. */
export const listen = forMethod('get', 'GET', (exchange) =>
  exchange.takesEvents ? openListening(exchange) : METHOD_NOT_ALLOWED,
);
