import type { BudgetVerdict, Quantity } from '../data-budget.js';
import type { Tier } from '../identity.js';
import { AGENT_SUSPENDED, CONFIGURATION_CHANGED, RUN_REPLACED, SERVER_SHUTDOWN } from '../abortable.js';
import { MIN_RETRY_AFTER } from '../limits.js';
import type { Refusal } from '../refusal.js';
import { accessDenied, invalidArgument, notImplemented } from './general.js';

export function toolFiltered(tool: string): Refusal {
  return {
    code: 'tool_filtered',
    gate: 'tool_filter',
    message: `Tool '${tool}' is not enabled for this agent instance (excluded by its tools: filter)`,
  };
}

export function mutationsNotAllowed(tool: string): Refusal {
  return accessDenied(
    'mutations',
    `Raw mutation tool '${tool}' is not available to this client-mode agent: it needs allow_mutations: true, ` +
      'PARSE_AGENT_ALLOW_WRITE_TOOLS=true and PARSE_AGENT_ALLOW_RAW_CRUD=true',
  );
}

export function notClientSafe(tool: string, clientSafe: readonly string[]): Refusal {
  return accessDenied(
    'mode_ceiling',
    `Tool '${tool}' is not available to client-mode agents. Available: ${clientSafe.join(', ')}. ` +
      'Custom tools join by registering with client_safe: true',
  );
}

/** An operator suspended the agent, or one that made it. Why is not said. */
export function agentSuspended(agent: string): Refusal {
  return accessDenied('suspension', `agent '${agent}' is suspended`);
}

export function tierTooLow(tool: string, needed: Tier | 'unknown', held: Tier): Refusal {
  return {
    code: 'permission_denied',
    gate: 'tier',
    message: `Permission denied: '${tool}' requires ${needed} permissions. Current level: ${held}`,
  };
}

const meant = (near: readonly string[]): string =>
  near.length > 0 ? ` Did you mean ${near.map((name) => `'${name}'`).join(' or ')}?` : '';

/** @param near similar names of tools that the caller may use */
export function unknownTool(tool: string, held: Tier, near: readonly string[]): Refusal {
  const { message, ...refusal } = tierTooLow(tool, 'unknown', held);
  return {
    ...refusal,
    message: `${message}. There is no tool of that name.${meant(near)} list_tools names the tools that you may call`,
  };
}

/** The tool does not declare the argument. @param near similar names that it declares */
export function unknownArgument(
  tool: string,
  argument: string,
  near: readonly string[],
  declared: readonly string[],
): Refusal {
  const takes = declared.length > 0 ? ` It takes: ${declared.join(', ')}` : ' It takes no arguments';
  return invalidArgument(`${tool} does not take '${argument}'.${meant(near)}${takes}`);
}

export function envGateClosed(
  what: 'Raw CRUD' | 'Raw schema-mutating',
  tool: string,
  missing: readonly string[],
): Refusal {
  return accessDenied('env_gates', `${what} tool '${tool}' is disabled. Required: ${missing.join(' AND ')}`);
}

/** A write that no person could review and that nothing could take back, of an agent whose writes are proposed. */
export function writesAreProposed(what: string): Refusal {
  return accessDenied(
    'mutations',
    `${what} is not available: the writes of this agent are proposed, and only create_object, update_object and delete_object ` +
      'can be. Propose the change with them, then call submit_changes',
  );
}

/** A tool of change sets, for an agent that has none. */
export function writesAreDirect(tool: string): Refusal {
  return accessDenied(
    'mutations',
    `Tool '${tool}' is not available: the writes of this agent happen at once, and are not collected in change sets`,
  );
}

/** Changes of a set that are in conflict with what there is now. @param rows the first of them, each with its reason */
export function changesInConflict(rows: readonly string[], others: number): Refusal {
  return {
    code: 'conflict',
    gate: 'data',
    message:
      `Nothing was applied, because some rows are not as they were: ${rows.join('; ')}` +
      (others > 0 ? `; and ${others} more` : ''),
  };
}

/** A custom tool that declares that it writes. */
export function writeGatesClosed(tool: string, missing: readonly string[]): Refusal {
  return accessDenied(
    'env_gates',
    `Tool '${tool}' writes and is disabled. Required: ${missing.join(' AND ')}`,
  );
}

export function methodFiltered(qualified: string): Refusal {
  return {
    code: 'tool_filtered',
    gate: 'method_filter',
    message: `Method '${qualified}' is not enabled for this agent instance (excluded by its methods: filter)`,
  };
}

export function methodEnvClosed(what: 'Write' | 'Admin', qualified: string, gate: string): Refusal {
  return accessDenied('env_gates', `${what} methods are disabled: '${qualified}' requires ${gate}=true`);
}

export function rateLimited(limit: number, window: number, retryAfter: number): Refusal {
  const seconds = Math.max(retryAfter, MIN_RETRY_AFTER);
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

/** A principal uses its whole share of the database. */
export function databaseShareTaken(retryAfter: number): Refusal {
  return {
    code: 'rate_limited',
    gate: 'database_share',
    message: `Too many database operations of this caller at once. Retry after ${retryAfter.toFixed(1)}s, with fewer calls at once`,
    retryAfter: Number(retryAfter.toFixed(2)),
  };
}

/** The order of an export cannot be stored where replicas find it; no file can be fetched. */
export function exportNotStored(retryAfter: number): Refusal {
  return {
    code: 'rate_limited',
    gate: 'handler',
    message: `The export cannot be stored at the moment, and none was ordered. Retry after ${retryAfter.toFixed(1)}s`,
    retryAfter: Number(retryAfter.toFixed(2)),
  };
}

/** A task that only read so far would not be known as one that changes data, and would be run again. */
export function changeNotNoted(): Refusal {
  return {
    code: 'rate_limited',
    gate: 'task',
    message:
      'It cannot be noted at the moment that this task changes data, and nothing was changed. Retry after 5.0s',
    retryAfter: 5,
  };
}

const QUANTITY_WORDS: Readonly<Record<Quantity, string>> = {
  calls: 'calls',
  rows: 'rows',
  bytes: 'bytes',
  databaseTime: 'ms of database time',
};

export function budgetExhausted({ quantity, limit, window, retryAfter }: BudgetVerdict): Refusal {
  const seconds = Math.max(retryAfter, MIN_RETRY_AFTER);
  return {
    code: 'rate_limited',
    gate: 'budget',
    message: `Data budget exhausted (${limit} ${QUANTITY_WORDS[quantity]} per ${window}s). Retry after ${seconds.toFixed(1)}s`,
    details: { kind: 'budget' },
    retryAfter: Number(seconds.toFixed(2)),
  };
}

const FASTER = 'Narrow the filter, or add an index for it: explain_query shows whether one serves it';

/** What to do about a tool that took too long, by what it does. */
const ADVICE_BY_WORK = { query: `. ${FASTER}`, other: '. Ask it for less by its arguments', write: '' };

/** @param work a query is faster with another filter; nothing is done about a write, which continues */
export function toolTimedOut(tool: string, seconds: number, work: keyof typeof ADVICE_BY_WORK): Refusal {
  return {
    code: 'timeout',
    gate: 'timeout',
    message: `Tool '${tool}' timed out after ${seconds}s${ADVICE_BY_WORK[work]}`,
  };
}

/** The query is valid, but its result is larger than the limit. */
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

/** Other large results are being read; the query is valid. */
export function answersBusy(): Refusal {
  return {
    code: 'rate_limited',
    gate: 'answer_size',
    message: 'Too many large answers are being read at the moment. Retry after 1.0s, or ask for less',
    details: { kind: 'answer_size' },
    retryAfter: 1,
  };
}

/** @param reads false for a write, which no other filter makes faster */
export function databaseTimedOut(maxTimeMs: number, reads: boolean): Refusal {
  const message = `Query timed out at the database (max_time_ms=${maxTimeMs})`;
  return { code: 'timeout', gate: 'timeout', message: reads ? `${message}. ${FASTER}` : message };
}

/** Sent to the agent, unlike other security refusals: it explains how to change the query. */
export function collectionScan(reason: string): Refusal {
  return { code: 'security_blocked', gate: 'collscan', message: `Refused: ${reason}` };
}

/** Calls do not run while audit records cannot be stored. */
export function auditUnavailable(retryAfter: number): Refusal {
  return {
    code: 'audit_unavailable',
    gate: 'audit',
    message: `Calls cannot be recorded at the moment, and this one was not run. Retry after ${retryAfter.toFixed(1)}s`,
    retryAfter,
  };
}

/** The call ran, but its audit record could not be stored. @param wrote whether it changed data */
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

/** What ends work besides its client. */
const ENDED_BY: ReadonlyMap<unknown, string> = new Map([
  [SERVER_SHUTDOWN, 'the service shuts down'],
  [RUN_REPLACED, 'another process runs this task'],
  [AGENT_SUSPENDED, 'the agent is suspended'],
  [CONFIGURATION_CHANGED, 'the policy, the agent or the rules of authentication changed'],
]);

/** @param reason what the transport gave as the reason; any other value is not sent */
export function cancelled(reason?: unknown): Refusal {
  const why = ENDED_BY.get(reason);
  const by = why === undefined ? 'Cancelled by client' : `Ended before it was done: ${why}`;
  return {
    code: 'cancelled',
    gate: 'cancellation',
    message: typeof reason === 'string' && reason !== '' ? `${by} (${reason})` : by,
  };
}

/** A person denied the call. @param reason for the agent */
export function deniedByPerson(reason: string): Refusal {
  return { ...approvalDenied(reason), details: { kind: 'denied_by_person' } };
}

/** The approval could not be obtained. @param reason for the agent */
export function approvalDenied(reason: string): Refusal {
  return { code: 'approval_denied', gate: 'approval', message: reason };
}

/** A tool sends a request for which the client did not declare the capability. */
export function clientCannotAnswer(what: string): Refusal {
  return notImplemented(`This call asks for ${what}, which the client did not declare`);
}

/** A request to the client failed or timed out. */
export function clientUnreachable(reason: string): Refusal {
  const message = `The client could not be asked: ${reason}`;
  return reason === 'timed-out'
    ? { code: 'timeout', gate: 'client', message }
    : { code: 'not_implemented', gate: 'client', message };
}
