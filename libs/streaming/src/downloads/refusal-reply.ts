import { type ErrorCode, Refused, Unauthorized } from '#agent';
import { SharedStateUnavailable } from '#cluster';
import { faultLine } from '#dispatcher';
import type { Exchange } from '../exchange.js';
import { reply, type Reply } from '../reply.js';
import { unauthorized } from '../rungs/caller.js';
import type { EdgeParts } from '../rungs/rung.js';

/** Not the caller's doing: worth another try. */
const UNAVAILABLE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'parse_error',
  'timeout',
  'cancelled',
  'audit_unavailable',
]);

export const BUSY = reply(503, '{"error":"server busy"}', { 'Retry-After': '1' });

/** Why no file is sent, before any of it was. */
export function refusalReply(fault: unknown, edge: EdgeParts, exchange: Exchange): Reply {
  if (fault instanceof Unauthorized) return unauthorized(edge, exchange);
  if (fault instanceof SharedStateUnavailable) return BUSY;
  if (!(fault instanceof Refused)) {
    edge.log.warn(faultLine('[Downloads]', fault));
    return reply(500, '{"error":"Internal error"}');
  }
  const { code, message, opaque, retryAfter } = fault.refusal;
  const body = JSON.stringify(opaque ? { error: 'Not permitted' } : { error: message, error_code: code });
  const wait = retryAfter !== undefined ? { 'Retry-After': String(Math.ceil(retryAfter)) } : undefined;
  if (code === 'rate_limited') return reply(429, body, wait);
  if (code === 'internal_error') return reply(500, '{"error":"Internal error"}');
  return reply(UNAVAILABLE.has(code) ? 503 : 403, body, wait);
}
