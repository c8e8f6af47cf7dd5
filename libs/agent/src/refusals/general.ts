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
