import type { BudgetVerdict, Quantity } from '../data-budget.js';
import type { Refusal } from '../refusal.js';
import { SHORTEST_RETRY } from '../rate-limiter.js';

export function rateLimited(limit: number, window: number, retryAfter: number): Refusal {
  const seconds = Math.max(retryAfter, SHORTEST_RETRY);
  return {
    code: 'rate_limited',
    gate: 'rate_limit',
    message: `Rate limit exceeded (${limit} requests per ${window}s). Retry after ${seconds.toFixed(1)}s`,
    retryAfter: Number(seconds.toFixed(2)),
  };
}

const QUANTITY_WORDS: Readonly<Record<Quantity, string>> = {
  calls: 'calls',
  rows: 'rows',
  bytes: 'bytes',
  databaseTime: 'ms of database time',
};

/** Something of the data budget is used up; `quantity` in the words of an agent. */
export function budgetExhausted({ quantity, limit, window, retryAfter }: BudgetVerdict): Refusal {
  const seconds = Math.max(retryAfter, SHORTEST_RETRY);
  return {
    code: 'rate_limited',
    gate: 'budget',
    message: `Data budget exhausted (${limit} ${QUANTITY_WORDS[quantity]} per ${window}s). Retry after ${seconds.toFixed(1)}s`,
    details: { kind: 'budget' },
    retryAfter: Number(seconds.toFixed(2)),
  };
}

export function toolTimedOut(tool: string, seconds: number): Refusal {
  return { code: 'timeout', gate: 'timeout', message: `Tool '${tool}' timed out after ${seconds}s` };
}

export function databaseTimedOut(maxTimeMs: number): Refusal {
  return {
    code: 'timeout',
    gate: 'timeout',
    message: `Query timed out at the database (max_time_ms=${maxTimeMs})`,
  };
}

/** Told to the agent, unlike other security refusals: it says how to ask better. */
export function collectionScan(reason: string): Refusal {
  return { code: 'security_blocked', gate: 'collscan', message: `Refused: ${reason}` };
}

/** Records are kept or calls are not run. */
export function auditUnavailable(retryAfter: number): Refusal {
  return {
    code: 'audit_unavailable',
    gate: 'audit',
    message: `Calls cannot be recorded at the moment, and this one was not run. Retry after ${retryAfter.toFixed(1)}s`,
    retryAfter,
  };
}

/** The call ran, and what came of it could not be recorded; whether it can be repeated is told truly. */
export function auditWithheld(tool: string, wrote: boolean): Refusal {
  const ran = `'${tool}' ran, but its record could not be kept, and its result is withheld.`;
  return {
    code: 'audit_unavailable',
    gate: 'audit',
    message: wrote
      ? `${ran} What it changed stays changed: look before you repeat it`
      : `${ran} It changed nothing and may be repeated`,
  };
}
