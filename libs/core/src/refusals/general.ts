import type { DenialKind, Refusal, RefusalDetails } from '../refusal.js';

/** An invalid argument; the message names it and the reason. */
export function invalidArgument(message: string, gate = 'arguments'): Refusal {
  return { code: 'invalid_argument', gate, message: `Invalid arguments: ${message}` };
}

/** An invalid query; the message names the place. */
export function invalidQuery(message: string): Refusal {
  return { code: 'invalid_query', gate: 'where', message };
}

/** The caller may not do this. @param gate the check that refused, for audit records */
export function accessDenied(
  gate: string,
  message: string,
  kind?: DenialKind,
  details?: RefusalDetails,
): Refusal {
  return {
    code: 'access_denied',
    gate,
    message,
    ...(kind || details ? { details: { ...(kind && { kind }), ...details } } : {}),
  };
}

/** Opaque on the wire. @param reason one of the reason tokens of docs/reference/refusals.md; logged only */
export function securityBlocked(
  gate: 'where' | 'pipeline' | 'canary' | 'arguments',
  reason: string,
  at?: string,
): Refusal {
  return {
    code: 'security_blocked',
    gate,
    message: 'Invalid params',
    opaque: true,
    cause: at === undefined ? reason : `${reason} at ${at}`,
  };
}

export function parseError(message: string, cause?: string): Refusal {
  return { code: 'parse_error', gate: 'data', message: `Parse error: ${message}`, ...(cause && { cause }) };
}

/** The refusal of a write that was sent: it is unknown whether it happened. */
export function outcomeUnknown(refusal: Refusal): Refusal {
  return {
    ...refusal,
    message:
      `${refusal.message}. Whether the write happened is not known: read the object before you try again, ` +
      'or repeat the same call with the idempotency_key that it had',
    details: { ...refusal.details, outcome: 'unknown' },
  };
}

/** An earlier call with the same key was sent, and its outcome is unknown. */
export function keyedOutcomeUnknown(): Refusal {
  return {
    code: 'parse_error',
    gate: 'data',
    message:
      'Parse error: a call with this idempotency_key is running, or nothing says whether it wrote. Nothing was written ' +
      'now. Read the object; if the change is not there after a minute, call again with another key',
    details: { outcome: 'unknown' },
  };
}

/** Idempotency keys cannot be looked up, so a repeated write could not be recognised. */
export function keysUnavailable(): Refusal {
  return {
    code: 'parse_error',
    gate: 'data',
    message:
      'Parse error: an idempotency_key cannot be remembered at the moment, and nothing was written. Retry after 5.0s',
    retryAfter: 5,
  };
}

/** This installation does not provide the feature. */
export function notImplemented(message: string): Refusal {
  return { code: 'not_implemented', gate: 'availability', message };
}

export function internalError(tool: string, cause?: string): Refusal {
  return {
    code: 'internal_error',
    gate: 'handler',
    message: `${tool} failed: internal error`,
    ...(cause && { cause }),
  };
}
