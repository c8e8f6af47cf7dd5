import type { Widening } from '../identity.js';
import type { DenialKind, Refusal, MissingRowReason } from '../refusal.js';
import { accessDenied, invalidArgument, notImplemented, parseError } from './general.js';

/** Rows come in the order of their ids, and behind an id of one type only those of this type. */
export function mixedIds(className: string): Refusal {
  return notImplemented(
    `'${className}' has ids of several types, behind which the database does not find all rows: export it with delivery inline, in parts by where`,
  );
}

export function hiddenClass(className: string): Refusal {
  return accessDenied('class', `Class '${className}' is not accessible to this agent`, 'hidden_class');
}

/** Rules of the operator name fields that the class does not have. Which ones is logged only. */
export function misconfiguredClass(className: string, cause: string): Refusal {
  const message =
    `Class '${className}' is refused: the operator's configuration does not fit its fields. ` +
    'Use other classes until the operator has corrected it';
  return { ...accessDenied('class', message, 'misconfigured_class'), cause };
}

/** The column leads to a class that the policy withholds; the message does not name that class. */
export function withheldColumn(field: string, kind: DenialKind): Refusal {
  return accessDenied('class', `'${field}' leads to a class that this agent may not use`, kind);
}

/** The class does not exist. @param suggestions similar names that the agent may know */
export function unknownClass(className: string, suggestions: readonly string[]): Refusal {
  const hint = suggestions.length > 0 ? ` Did you mean: ${joinNames(suggestions)}?` : '';
  return invalidArgument(
    `Could not fetch schema for '${className}'.${hint} There is no class of that name; get_all_schemas lists those that you may read`,
    'class',
  );
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

/** One command reads one database. */
export function crossDatabase(className: string, other: string): Refusal {
  return {
    code: 'invalid_query',
    gate: 'database',
    details: { kind: 'cross_database' },
    message:
      `'${other}' is stored in another database than '${className}', and one query reads one database. ` +
      'Ask for both classes in calls of their own: take the ids from the first answer and write them into the where of the second. ' +
      'Pointers are followed with include',
  };
}

/** One transaction changes one database. @param advice what to do about it, as a sentence */
export function crossDatabaseChanges(className: string, other: string, advice: string): Refusal {
  return {
    code: 'invalid_argument',
    gate: 'database',
    details: { kind: 'cross_database' },
    message: `'${other}' is stored in another database than '${className}', and changes that are applied as one are those of one database. ${advice}`,
  };
}

/** The operator opened the database of the class for reading alone. */
export function readOnlyDatabase(className: string): Refusal {
  return accessDenied(
    'database',
    `'${className}' is stored in a database that is only read`,
    'read_only_database',
  );
}

/** The class is in a database of each tenant, and the agent has no tenant that can have one. */
export function withoutTenantDatabase(className: string): Refusal {
  return accessDenied(
    'tenant',
    `Each tenant has its own database of '${className}', and this agent has no tenant that can name one: 1 to 63 of a-z, 0-9, _ and -`,
    'tenant_scope',
  );
}

/** The database of the class could not be reached when the classes were read. */
export function databaseAway(className: string): Refusal {
  return parseError(`the database of '${className}' does not answer`);
}

export function fieldDenied(
  context: string,
  reference: string,
  root: string,
  allowed: readonly string[],
): Refusal {
  const { shown, text } = joinAtMost(allowed);
  const details = { denied_field: root, allowed_fields: shown };
  const outside = `${context} '${reference}' ("${root}") outside agent_fields allowlist. Allowed: ${text}`;
  if (!root.startsWith('_p_')) return accessDenied('fields', outside, 'field_denied', details);
  const bare = root.slice('_p_'.length);
  const readable = allowed.includes(bare);
  // A reference keeps its `$`, so that the suggestion can replace what was written.
  const rewrite = context === 'pipeline reference' || reference.startsWith('$') ? `$${bare}` : bare;
  const hint = readable
    ? ` '${root}' is the storage column of pointer '${bare}'; write "${rewrite}" instead.`
    : ` '${root}' is the storage form of a column; use logical field names.`;
  return accessDenied('fields', outside + hint, 'storage_form_field_ref', {
    ...details,
    ...(readable && { suggested_rewrite: rewrite }),
  });
}

/** Class-level permissions refuse. `reason` is logged only: it would reveal who else may. */
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

/** The policy masks the field: its value may not be compared with anything. */
export function maskedField(
  context: string,
  reference: string,
  root: string,
  allowed: readonly string[],
): Refusal {
  const { shown, text } = joinAtMost(allowed);
  return accessDenied(
    'fields',
    `${context} '${reference}' names a masked field: it cannot be filtered, sorted, grouped, computed with, followed or ` +
      `written. Use other fields: ${text}`,
    'masked_field',
    { denied_field: root, allowed_fields: shown },
  );
}

/** The row does not exist, or the caller may not see it: the same text for both. */
export function objectNotFound(className: string, objectId: string): Refusal {
  return parseError(`Object not found: ${className}#${objectId}`);
}

/**
 * The tenant has no such row. The same text for rows of other tenants and rows that do not exist, so that an id reveals
 * nothing about other tenants.
 */
export function notTenantsRows(className: string, ids: readonly string[], cause?: MissingRowReason): Refusal {
  const named = ids.map((id) => `'${id}'`).join(', ');
  return {
    ...accessDenied(
      'tenant',
      `This agent's tenant has no object of class '${className}' under the id: ${named}`,
      'tenant_scope',
    ),
    ...(cause !== undefined && { cause }),
  };
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

/** The permissions of the store refused what the policy permits. */
export function storeDenied(store: string): Refusal {
  return accessDenied('store', `${store} does not permit this to the caller`, 'clp_denied');
}

/** This deployment has no connection that can serve the request. */
export function noRoute(reason: string): Refusal {
  return accessDenied('route', reason);
}

/** The answer to a subquery becomes a part of the query, and would be too large for it. */
export function tooManyAnswers(operator: string, className: string): Refusal {
  return {
    code: 'invalid_query',
    gate: 'answer_size',
    details: { kind: 'answer_size' },
    message:
      `${operator} on '${className}' matches too many rows for one query (4 MiB of values). ` +
      'Narrow it: add conditions to its where, or ask in parts, such as ranges of objectId or createdAt. ' +
      'To count or group along a Pointer, join with $lookup in aggregate',
  };
}

/** Only MongoDB could answer, and it runs no Cloud Code: the operator has to say that none decides what users read. */
export function readHooksPossible(classNames: readonly string[]): Refusal {
  const statements = classNames.map((name) => `policy.classes.${name}.readHooks: none`);
  return accessDenied(
    'route',
    `Only MongoDB can answer this, and it runs no beforeFind or afterFind of Cloud Code, which may decide what this user reads of ${classNames.join(', ')}. ` +
      `Where none does, the operator writes ${statements.join(' and ')}, or parse.readHooks: none for every class. ` +
      'Otherwise ask with query_class, get_object or count_objects, by conditions that Parse Server can compare',
    'read_hooks',
  );
}

/** The user or role that the agent acts as cannot be found. */
export function identityUnresolved(cause: string): Refusal {
  return { ...accessDenied('identity', 'The identity of this agent cannot be resolved'), cause };
}

/** Contains counts only: the operator's event has the names. */
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

/** A filter function of the agent did not return a constraint: no rows are read. */
export function agentFilterFailed(className: string, cause: string): Refusal {
  return {
    ...accessDenied('agent_filter', `The row filter of this agent for '${className}' could not be evaluated`),
    cause,
  };
}

/** A row filter compares with a value that the agent does not have: no rows are read. */
export function agentValueUnset(className: string, cause: string): Refusal {
  return {
    ...accessDenied(
      'agent_filter',
      `The rows of '${className}' are limited by a value of the caller that this caller does not have`,
      'agent_value',
    ),
    cause,
  };
}

/** The row limits of a joined class cannot be expressed inside the join. */
export function tenantJoinDenied(className: string): Refusal {
  return accessDenied(
    'joins',
    `Pipeline target '${className}' cannot be joined: its row limits cannot be carried into the join`,
    'tenant_join_denied',
  );
}

/** Making and removing classes needs the master key, as in Parse. */
export function classChangeDenied(): Refusal {
  return accessDenied(
    'class_permission',
    'Classes can only be made or removed by an agent in master posture',
    'unenforceable_scope',
  );
}

/** Who removes a class removes every row of it. */
export function holdsOthersRows(className: string): Refusal {
  return accessDenied(
    'agent_filter',
    `Class '${className}' may hold rows that this agent does not read: only an agent that reads all of them may remove it`,
    'unenforceable_scope',
  );
}

/** The search process counts facets before row filters apply. */
export function facetFilterUnsafe(className: string, filters: readonly string[]): Refusal {
  return accessDenied(
    'facets',
    `Facets of '${className}' cannot be counted: ${joinNames(filters)} cannot be carried into the counts`,
    'atlas_facet_filter_unsafe',
  );
}

export function masterAtlasRequired(): Refusal {
  return invalidArgument(
    'atlas_faceted_search needs an agent built with master_atlas: true (masterAtlas in its configuration)',
    'master_atlas',
  );
}

/** The class is not declared for vector search. The same text for classes that do not exist. */
export function notSearchable(className: string): Refusal {
  return invalidArgument(
    `class '${className}' is not declared searchable; use atlas_text_search or query_class`,
    'searchable',
  );
}

/** Other classes have a tenant scope: vector search does not cross all tenants by omission. */
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

/** The embeddings endpoint returned no usable result; `cause` is logged only. */
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

const joinNames = (names: Iterable<string>): string => [...names].join(', ');

/** The first names, and how many more there are. */
function joinAtMost(names: readonly string[], most = 20): { shown: string[]; text: string } {
  const shown = names.slice(0, most);
  const more = names.length > most ? ` (+${names.length - most} more)` : '';
  return { shown, text: shown.length > 0 ? joinNames(shown) + more : 'none' };
}

/** A new object would be hidden from its maker. @param column one that the caller wrote and whose value keeps it out */
export function rowNotAdmitted(className: string, column?: string): Refusal {
  const because = column === undefined ? '' : `: the value of '${column}' is not one of them`;
  return accessDenied(
    'filters',
    `This agent may only make objects of '${className}' that its own filters admit${because}`,
    'row_filter',
  );
}
