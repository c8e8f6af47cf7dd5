import type { DenialKind, Refusal, RefusalDetails } from '../refusal.js';

/** An argument that cannot be; the message says which and why. */
export function invalidArgument(message: string, gate = 'arguments'): Refusal {
  return { code: 'invalid_argument', gate, message: `Invalid arguments: ${message}` };
}

/** A query that cannot be; the message says where. */
export function invalidQuery(message: string): Refusal {
  return { code: 'invalid_query', gate: 'where', message };
}

/** What the caller may not do. `gate` says in audit records which check spoke. */
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

/** Opaque on the wire; `reason` is one of the reason tokens of docs/refusals.md and goes to the log. */
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

/** The same, of a write that was sent: nothing says whether it happened. */
export function outcomeUnknown(refusal: Refusal): Refusal {
  return {
    ...refusal,
    message:
      `${refusal.message}. Whether the write happened is not known: read the object before you try again, ` +
      'or repeat the same call with the idempotency_key that it had',
    details: { ...refusal.details, outcome: 'unknown' },
  };
}

/** The first call with the key was sent, and nothing says what became of it. */
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

/** Keys cannot be looked up, so that a second write could not be told from the first. */
export function keysUnavailable(): Refusal {
  return {
    code: 'parse_error',
    gate: 'data',
    message:
      'Parse error: an idempotency_key cannot be remembered at the moment, and nothing was written. Retry after 5.0s',
    retryAfter: 5,
  };
}

/** What this installation has not got. */
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
