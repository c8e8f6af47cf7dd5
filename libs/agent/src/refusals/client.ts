import type { Refusal } from '../refusal.js';
import { notImplemented } from './general.js';

export function cancelled(reason?: string): Refusal {
  return {
    code: 'cancelled',
    gate: 'cancellation',
    message: reason ? `Cancelled by client (${reason})` : 'Cancelled by client',
  };
}

/** A gated call that nobody allowed, in the words of whoever decides or cannot. */
export function approvalDenied(reason: string): Refusal {
  return { code: 'approval_denied', gate: 'approval', message: reason };
}

/** A tool asks something that this client never said it can answer. */
export function clientCannotAnswer(what: string): Refusal {
  return notImplemented(`This call asks for ${what}, which the client did not declare`);
}

/** A tool asked, and no answer came. */
export function clientUnreachable(reason: string): Refusal {
  const message = `The client could not be asked: ${reason}`;
  return reason === 'timed-out'
    ? { code: 'timeout', gate: 'client', message }
    : { code: 'not_implemented', gate: 'client', message };
}
