import { type ErrorCode, Refused, Unauthorized } from '#agent';
import { SharedStateUnavailable } from '#cluster';
import { faultLine } from '#dispatcher';
import type { Exchange } from '../exchange.js';
import { FILE_BUSY, FILE_FAILED, fileRefused } from '../http/refusals.js';
import type { Reply } from '../reply.js';
import { unauthorized } from '../rungs/caller.js';
import type { EdgeParts } from '../rungs/rung.js';

/** Not the caller's doing: worth another try. */
const UNAVAILABLE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'parse_error',
  'timeout',
  'cancelled',
  'audit_unavailable',
]);

/** Why no file is sent, before any of it was. */
export function refusalReply(fault: unknown, edge: EdgeParts, exchange: Exchange): Reply {
  if (fault instanceof Unauthorized) return unauthorized(edge, exchange);
  if (fault instanceof SharedStateUnavailable) return FILE_BUSY;
  if (!(fault instanceof Refused)) {
    edge.log.warn(faultLine('[Downloads]', fault));
    return FILE_FAILED;
  }
  const { code, message, opaque, retryAfter } = fault.refusal;
  const told = opaque ? null : { error: message, error_code: code };
  const wait = retryAfter !== undefined ? { 'Retry-After': String(Math.ceil(retryAfter)) } : undefined;
  if (code === 'rate_limited') return fileRefused(429, told, wait);
  if (code === 'internal_error') return FILE_FAILED;
  return fileRefused(UNAVAILABLE.has(code) ? 503 : 403, told, wait);
}
