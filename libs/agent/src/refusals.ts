import type { BudgetVerdict, Quantity } from './data-budget.js';
import { SHORTEST_RETRY } from './rate-limiter.js';
import type { DenialKind, Refusal, RefusalDetails } from './refusal.js';
import type { Tier } from './tier.js';
import type { Widening } from './widening.js';

/** The refusal catalogue: every text an agent can be told, in one place. */

const listed = (names: Iterable<string>): string => [...names].join(', ');

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

export function hiddenClass(className: string): Refusal {
  return accessDenied('class', `Class '${className}' is not accessible to this agent`, 'hidden_class');
}

/** The class is not named: the caller named a column, and where it leads is what the policy withholds. */
export function withheldColumn(field: string, kind: 'hidden_class' | 'class_filter'): Refusal {
  return accessDenied('class', `'${field}' leads to a class that this agent may not use`, kind);
}

/** A class nobody created, with the nearest names that the agent may know. */
export function unknownClass(className: string, suggestions: readonly string[]): Refusal {
  const hint = suggestions.length > 0 ? ` Did you mean: ${listed(suggestions)}?` : '';
  return invalidArgument(`Could not fetch schema for '${className}'.${hint}`, 'class');
}

export type ClassFilterSite =
  'Class' | 'Pipeline target' | 'Pointer-include target' | 'Query class' | 'Pointer target';

export function classFiltered(className: string, site: ClassFilterSite = 'Class'): Refusal {
  return accessDenied(
    'class',
    `${site} '${className}' is outside this agent's classes: allowlist`,
    'class_filter',
  );
}

export function fieldDenied(
  context: string,
  reference: string,
  root: string,
  allowed: readonly string[],
): Refusal {
  const shown = allowed.slice(0, 20);
  const more = allowed.length > shown.length ? ` (+${allowed.length - shown.length} more)` : '';
  const details = { denied_field: root, allowed_fields: shown };
  const outside = `${context} '${reference}' ("${root}") outside agent_fields allowlist. Allowed: ${listed(shown)}${more}`;
  if (!root.startsWith('_p_')) return accessDenied('fields', outside, 'field_denied', details);
  const bare = root.slice('_p_'.length);
  const readable = allowed.includes(bare);
  const hint = readable
    ? ` '${root}' is the storage column of pointer '${bare}'; write "$${bare}" instead.`
    : ` '${root}' is the storage form of a column; use logical field names.`;
  return accessDenied('fields', outside + hint, 'storage_form_field_ref', {
    ...details,
    ...(readable && { suggested_rewrite: `$${bare}` }),
  });
}

/** Class-level permissions say no. Which of them is for the log: it would tell who else may. */
export function classPermissionDenied(className: string, operation: string, reason?: string): Refusal {
  return {
    ...accessDenied(
      'class_permissions',
      `Class '${className}' does not permit '${operation}' to this agent`,
      'clp_denied',
    ),
    ...(reason !== undefined && { cause: reason }),
  };
}

/** A column that class-level permissions hide from this caller was named in a query. */
export function protectedFieldRef(context: string, reference: string, root: string): Refusal {
  return accessDenied('fields', `${context} '${reference}' names a protected field`, 'protected_field_ref', {
    denied_field: root,
  });
}

/** The policy shows the field in masked form, or not at all: nothing may be compared with what it stands for. */
export function maskedField(
  context: string,
  reference: string,
  root: string,
  allowed: readonly string[],
): Refusal {
  const shown = allowed.slice(0, 20);
  const more = allowed.length > shown.length ? ` (+${allowed.length - shown.length} more)` : '';
  return accessDenied(
    'fields',
    `${context} '${reference}' names a masked field: it cannot be filtered, sorted, grouped, computed with, followed or ` +
      `written. Use other fields: ${listed(shown)}${more}`,
    'masked_field',
    { denied_field: root, allowed_fields: shown },
  );
}

/** The store's own permissions refused what the policy left. */
export function storeDenied(store: string): Refusal {
  return accessDenied('store', `${store} does not permit this to the caller`, 'clp_denied');
}

/** What is asked has no way to the data in this deployment. */
export function noRoute(reason: string): Refusal {
  return accessDenied('route', reason);
}

/** The agent acts for somebody who cannot be found. */
export function identityUnresolved(cause: string): Refusal {
  return { ...accessDenied('identity', 'The identity of this agent cannot be resolved'), cause };
}

/** Counts only: who they are is for the operator's event. */
export function subAgentWidens({ reason, parent, child, extra }: Widening): Refusal {
  const wanted =
    reason === 'child_master_key'
      ? 'the master key'
      : `${child.length} principals, ${extra.length} of them new`;
  return accessDenied(
    'identity',
    `A sub-agent may not act with more rights than its parent: the parent has ${parent.length} principals, it asks for ${wanted}`,
  );
}

/** A filter of the agent that is a function did not give a constraint: no rows rather than all. */
export function agentFilterFailed(className: string, cause: string): Refusal {
  return {
    ...accessDenied('agent_filter', `The row filter of this agent for '${className}' could not be evaluated`),
    cause,
  };
}

/** The rows of a joined class could not be limited to what the agent may see. */
export function tenantJoinDenied(className: string): Refusal {
  return accessDenied(
    'joins',
    `Pipeline target '${className}' cannot be joined: its row limits cannot be carried into the join`,
    'tenant_join_denied',
  );
}

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
    `Tool '${tool}' is not available to client-mode agents. Available: ${listed(clientSafe)}. ` +
      'Custom tools join by registering with client_safe: true',
  );
}

export function tierTooLow(tool: string, needed: Tier | 'unknown', held: Tier): Refusal {
  return {
    code: 'permission_denied',
    gate: 'tier',
    message: `Permission denied: '${tool}' requires ${needed} permissions. Current level: ${held}`,
  };
}

export function envGateClosed(
  what: 'Raw CRUD' | 'Raw schema-mutating',
  tool: string,
  missing: readonly string[],
): Refusal {
  return accessDenied('env_gates', `${what} tool '${tool}' is disabled. Required: ${missing.join(' AND ')}`);
}

/** An application's own tool that declares that it writes. */
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

/** A right on rows that cannot be carried into what would run. */
export function unenforceableScope(message: string): Refusal {
  return accessDenied('scope', message, 'unenforceable_scope');
}

export function cancelled(reason?: string): Refusal {
  return {
    code: 'cancelled',
    gate: 'cancellation',
    message: reason ? `Cancelled by client (${reason})` : 'Cancelled by client',
  };
}

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

export function parseError(message: string, cause?: string): Refusal {
  return { code: 'parse_error', gate: 'data', message: `Parse error: ${message}`, ...(cause && { cause }) };
}

/** A row that is not there, or that the caller may not know of: both are told alike. */
export function objectNotFound(className: string, objectId: string): Refusal {
  return parseError(`Object not found: ${className}#${objectId}`);
}

export function pointerShapeMismatch(className: string, field: string): Refusal {
  return {
    code: 'pointer_shape_mismatch',
    gate: 'where',
    message:
      `Pointer-shape mismatch: '${field}' of ${className} holds pointers of unknown class; ` +
      `write each value as {"__type":"Pointer","className":"<Class>","objectId":"<id>"}`,
  };
}

/** Told to the agent, unlike other security refusals: it says how to ask better. */
export function collectionScan(reason: string): Refusal {
  return { code: 'security_blocked', gate: 'collscan', message: `Refused: ${reason}` };
}

/** Facets are counted by the search process, before any filter of rows could hold. */
export function facetFilterUnsafe(className: string, filters: readonly string[]): Refusal {
  return accessDenied(
    'facets',
    `Facets of '${className}' cannot be counted: ${listed(filters)} cannot be carried into the counts`,
    'atlas_facet_filter_unsafe',
  );
}

export function masterAtlasRequired(): Refusal {
  return invalidArgument(
    'atlas_faceted_search needs an agent built with master_atlas: true (masterAtlas in its configuration)',
    'master_atlas',
  );
}

/** Nobody declared that the class may be searched by likeness. Said of classes that do not exist too. */
export function notSearchable(className: string): Refusal {
  return invalidArgument(
    `class '${className}' is not declared searchable; use atlas_text_search or query_class`,
    'searchable',
  );
}

/** Where some class keeps tenants apart, likeness is not searched across all of them by omission. */
export function missingTenantScope(className: string): Refusal {
  return accessDenied(
    'tenant',
    `Class '${className}' declares no tenant scope, and other classes do: it cannot be searched by likeness`,
    'missing_tenant_scope',
  );
}

/** @param alternative what the agent can do instead */
export function searchNotConfigured(alternative: string): Refusal {
  return notImplemented(
    `Atlas Search is not configured: this database has no search process (MongoDB Atlas, or a deployment with mongot). ${alternative}`,
  );
}

export function embeddingsNotConfigured(): Refusal {
  return notImplemented(
    'Text cannot be compared here: no embeddings endpoint is configured (embeddings in the configuration). ' +
      'Use find_similar with object_id, or atlas_text_search',
  );
}

/** The embeddings endpoint gave no usable answer; why is for the log. */
export function embeddingFailed(cause: string): Refusal {
  return {
    code: 'parse_error',
    gate: 'embeddings',
    message: 'Parse error: the text could not be embedded',
    cause,
  };
}

export function embeddingBudgetSpent(tokens: number, window: number, retryAfter: number): Refusal {
  const seconds = Math.max(retryAfter, 0.1);
  return {
    code: 'rate_limited',
    gate: 'embedding_budget',
    message: `Embedding budget spent (${tokens} tokens per ${window}s). Retry after ${seconds.toFixed(1)}s`,
    retryAfter: Number(seconds.toFixed(2)),
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
