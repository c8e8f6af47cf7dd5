import { filter } from 'rxjs';
import type { EdgeDependencies } from '../http/edge-dependencies.js';
import type { HttpExchange } from '../http/http-exchange.js';
import { serverBusy } from '../http/refusals.js';
import { type Reply, isNotification } from '../message.js';
import {
  EventStream,
  type ResponseStream,
  Heartbeat,
  ImmediateStream,
  LateStream,
  progressTokenOf,
} from './event-stream.js';
import { ResumableStream } from './resumable-stream.js';

/** The first revision that is not frozen: its streams can be resumed and have only comments as heartbeats. */
const ADDITIONS = '2025-11-25';

export function isFull(open: number, { settings }: EdgeDependencies): boolean {
  return settings.maxConcurrentDispatchers !== null && open >= settings.maxConcurrentDispatchers;
}

export function eventStream({ response, edge: { settings, unread } }: HttpExchange): EventStream {
  return new EventStream(response, settings.maxStreamBuffer, unread);
}

/** The form of the answer to a request: a stream, or (null) one body. An edge without capacity refuses. */
export function chooseResponseStream(exchange: HttpExchange): ResponseStream | Reply | null {
  const { message, era, edge } = exchange;
  if (!exchange.takesEvents || isNotification(message)) return null;
  if (isFull(edge.counts.dispatchers, edge)) return serverBusy(message.id);
  const stream = eventStream(exchange);
  if (era === 'modern')
    return new LateStream(
      stream,
      edge.keepAlives,
      (answer) => exchange.send(answer),
      new Heartbeat(progressTokenOf(message.params), exchange.version),
    );
  return legacyStream(exchange, stream);
}

function legacyStream(exchange: HttpExchange, stream: EventStream): ResponseStream {
  const { agent, message, version, session, correlationId } = exchange;
  const { keepAlives, wire } = exchange.edge;
  const late = version >= ADDITIONS;
  const heartbeat = new Heartbeat(progressTokenOf(message.params), version);
  // The session's id stands in the headers, and is not known before the answer is.
  if (message.method !== 'initialize') stream.open();
  if (late && agent && session && correlationId !== undefined && message.method === 'tools/call')
    return new ResumableStream(
      stream,
      keepAlives,
      wire.resumption,
      { session: correlationId, agent },
      heartbeat,
    );
  const { onCallStreams } = wire.listChanges;
  // Later revisions require a message on one stream only: the listening stream, where there is one.
  const elsewhere = () => correlationId !== undefined && wire.listening.has(correlationId);
  return new ImmediateStream(stream, {
    keepAlives,
    heartbeat,
    listChanges: late ? onCallStreams.pipe(filter(() => !elsewhere())) : onCallStreams,
  });
}
