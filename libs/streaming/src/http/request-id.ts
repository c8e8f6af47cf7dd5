import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isCorrelationId } from '#core';

/** The header that names a request, of the request and of its answer. */
const REQUEST_ID_HEADER = 'X-Request-Id';

/**
 * Names a request by the id that its sender gave it, and makes one where it gave none or one with other characters. Every answer
 * carries the id, so it is set before anything can answer.
 * @returns the id, the same for each call
 */
export function nameRequest({ headers }: IncomingMessage, response: ServerResponse): string {
  const named = response.getHeader(REQUEST_ID_HEADER);
  if (typeof named === 'string') return named;
  const given = headers['x-request-id'];
  const id = isCorrelationId(given) ? given : randomUUID();
  if (!response.headersSent) response.setHeader(REQUEST_ID_HEADER, id);
  return id;
}
