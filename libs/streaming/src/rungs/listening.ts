import { type Agent, sanitizeCorrelationId } from '#agent';
import { FALLBACK_VERSION, isLegacyVersion } from '#dispatcher';
import { eventStream, isFull } from '../answers/carrier-choice.js';
import { onceClosed } from '../connection-turns.js';
import { ReturnedStream } from '../answers/returned-stream.js';
import type { Exchange } from '../exchange.js';
import type { OpenStream } from '../open-streams.js';
import { FOREIGN_SESSION, NO_SESSION, serverBusy, sessionNotFound, UNKNOWN_EVENT } from '../http/refusals.js';
import { headerText } from '../request-headers.js';
import { ListeningStream } from '../sse/listening-stream.js';
import { customHeader, origin } from './browser-origin.js';
import { authenticate, credentialsOf, unauthorized } from './caller.js';
import { legacyVersion, VERSION_HEADER } from './protocol-era.js';
import { requestLimit } from './request-limit.js';
import type { EdgeParts, Rung, RungVerdict } from './rung.js';
import { turn } from './turn.js';

/** The first revision whose events have ids. */
const WITH_EVENT_IDS = '2025-11-25';

/** Finds the session that a stream is for; a session nobody has is the caller's from then on. */
const ownSession: Rung = {
  name: 'own-session',
  check: async (exchange, { sessions, settings }) => {
    const { agent, headers } = exchange;
    const id = sanitizeCorrelationId(headerText(headers, 'mcp-session-id'));
    if (id === undefined || !agent) return NO_SESSION;
    exchange.correlationId = id;
    const named = headerText(headers, VERSION_HEADER);
    const known = await sessions.find(id);
    if (!known) {
      if (settings.strictSessions) return sessionNotFound(exchange.message.id);
      const version = isLegacyVersion(named) ? named : FALLBACK_VERSION;
      const draft = { owner: agent.principal, version, capabilities: {} };
      if ((await sessions.create({ ...draft, proposedId: id })) !== id) return FOREIGN_SESSION;
      exchange.session = { ...draft, terminated: false };
    } else {
      // An ended session is dead for everybody, and where ids have to be known a foreign one is like one that nobody has.
      const isForeign = known.owner !== agent.principal;
      if (known.terminated || (isForeign && settings.strictSessions))
        return sessionNotFound(exchange.message.id);
      if (isForeign) return FOREIGN_SESSION;
      exchange.session = known;
    }
    exchange.version = isLegacyVersion(named) ? named : exchange.session.version;
    return null;
  },
};

const room: Rung = {
  name: 'room',
  check: (_, edge) => (isFull(edge.counts.listeningStreams, edge) ? serverBusy(null) : null),
};

/** Every check of a request for a listening stream, in their order. */
const ADMISSION: readonly Rung[] = [
  origin,
  customHeader,
  legacyVersion,
  authenticate,
  requestLimit,
  ownSession,
  turn,
  room,
];

export async function openListening(exchange: Exchange, edge: EdgeParts): Promise<RungVerdict> {
  for (const rung of ADMISSION) {
    const verdict = await rung.check(exchange, edge);
    if (verdict) return verdict;
  }
  const { agent, correlationId: session } = exchange;
  if (!agent || session === undefined) return unauthorized(edge, exchange);
  if (exchange.isGone) return 'gone';
  const eventId = headerText(exchange.headers, 'last-event-id');
  if (eventId !== undefined && exchange.version >= WITH_EVENT_IDS)
    return resume(eventId, session, agent, exchange, edge);

  const stream = new ListeningStream(eventStream(exchange, edge), edge.keepAlives);
  // Only what counts the stream ends it: a stream that was replaced is still open until its response is.
  count(stream, agent, exchange, edge, () => {
    stream.close();
    edge.wire.listening.detach(session, stream);
  });
  stream.open();
  edge.wire.listening.attach(session, agent, stream);
  return 'streamed';
}

/** Goes on with one stream after the event that its client saw last, and tells nothing else. */
async function resume(
  eventId: string,
  session: string,
  agent: Agent,
  exchange: Exchange,
  edge: EdgeParts,
): Promise<RungVerdict> {
  const { resumption } = edge.wire;
  const place = resumption.placeOf({ session, agent }, eventId);
  const missed = place && (await resumption.log.after(place.stream, place.entry));
  if (!place || !missed) return UNKNOWN_EVENT;
  if (exchange.isGone) return 'gone';
  if (isFull(edge.counts.listeningStreams, edge)) return serverBusy(null);
  const events = eventStream(exchange, edge);
  const stream = new ReturnedStream(events, edge.keepAlives, resumption, place);
  count(stream, agent, exchange, edge, () => stream.end());
  events.open();
  stream.begin(missed);
  return 'streamed';
}

/** Counts a stream until its response is closed, whoever closed it. */
function count(
  stream: OpenStream,
  agent: Agent,
  exchange: Exchange,
  edge: EdgeParts,
  onClosed: () => void,
): void {
  const { counts, openStreams } = edge;
  counts.listeningStreams += 1;
  openStreams.add(stream, { agent, credentials: credentialsOf(exchange) });
  onceClosed(exchange.request, exchange.response, () => {
    counts.listeningStreams -= 1;
    openStreams.remove(stream);
    onClosed();
  });
}
