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

/** Too many calls of one principal at the same time. */
export function tooManyRunning(limit: number, retryAfter: number): Refusal {
  return {
    code: 'rate_limited',
    gate: 'running_calls',
    message: `Too many calls at once: ${limit} of this caller run and others wait. Retry after ${retryAfter.toFixed(1)}s, with fewer at once`,
    retryAfter: Number(retryAfter.toFixed(2)),
  };
}

/** One principal takes its whole share of the database. */
export function databaseShareTaken(retryAfter: number): Refusal {
  return {
    code: 'rate_limited',
    gate: 'database_share',
    message: `Too many database operations of this caller at once. Retry after ${retryAfter.toFixed(1)}s, with fewer calls at once`,
    retryAfter: Number(retryAfter.toFixed(2)),
  };
}

/** A limit whose counts cannot be read or written at this moment: nothing is let through uncounted. */
export function limitUncountable(limit: 'rate_limit' | 'budget', retryAfter: number): Refusal {
  const what = limit === 'budget' ? 'The data budget' : 'The rate limit';
  return {
    code: 'rate_limited',
    gate: limit,
    message: `${what} cannot be counted at the moment, and no call passes uncounted. Retry after ${retryAfter.toFixed(1)}s`,
    ...(limit === 'budget' && { details: { kind: 'budget' as const } }),
    retryAfter: Number(retryAfter.toFixed(2)),
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

/** The query is right, and its answer is more than is read for any. */
export function answerTooLarge(store: string): Refusal {
  return {
    code: 'invalid_query',
    gate: 'answer_size',
    message:
      `The answer of ${store} is too large to be read (at most 32 MiB, each value counting at least 64 bytes). ` +
      'Ask for less: a smaller limit, fewer keys, ids or include; in a pipeline $match and $limit before stages that ' +
      'multiply or collect ($unwind, $range, $lookup, $group with $push, $facet), and $project for smaller rows',
    details: { kind: 'answer_size' },
  };
}

/** Other large answers are being read; nothing is wrong with the query. */
export function answersBusy(): Refusal {
  return {
    code: 'rate_limited',
    gate: 'answer_size',
    message: 'Too many large answers are being read at the moment. Retry after 1.0s, or ask for less',
    details: { kind: 'answer_size' },
    retryAfter: 1,
  };
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
