import type { DenialKind, Refusal, RefusalDetails } from '../refusal.js';

export function invalidArgument(message: string, gate = 'arguments'): Refusal {
  return { code: 'invalid_argument', gate, message: `Invalid arguments: ${message}` };
}

export function invalidQuery(message: string): Refusal {
  return { code: 'invalid_query', gate: 'where', message };
}

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
