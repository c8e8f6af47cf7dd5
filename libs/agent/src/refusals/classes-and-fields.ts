import type { DenialKind, Refusal, StrayRows } from '../refusal.js';
import { invalidArgument, accessDenied, parseError } from './general.js';
import { listed, listedAtMost } from './listed.js';

export function hiddenClass(className: string): Refusal {
  return accessDenied('class', `Class '${className}' is not accessible to this agent`, 'hidden_class');
}

/** The operator's rules for the class name fields that it does not have. Which ones is for the log. */
export function misconfiguredClass(className: string, cause: string): Refusal {
  const message =
    `Class '${className}' is refused: the operator's configuration does not fit its fields. ` +
    'Use other classes until the operator has corrected it';
  return { ...accessDenied('class', message, 'misconfigured_class'), cause };
}

/** The class is not named: the caller named a column, and where it leads is what the policy withholds. */
export function withheldColumn(field: string, kind: DenialKind): Refusal {
  return accessDenied('class', `'${field}' leads to a class that this agent may not use`, kind);
}

/** A class nobody created, with the nearest names that the agent may know. */
export function unknownClass(className: string, suggestions: readonly string[]): Refusal {
  const hint = suggestions.length > 0 ? ` Did you mean: ${listed(suggestions)}?` : '';
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

export function fieldDenied(
  context: string,
  reference: string,
  root: string,
  allowed: readonly string[],
): Refusal {
  const { shown, text } = listedAtMost(allowed);
  const details = { denied_field: root, allowed_fields: shown };
  const outside = `${context} '${reference}' ("${root}") outside agent_fields allowlist. Allowed: ${text}`;
  if (!root.startsWith('_p_')) return accessDenied('fields', outside, 'field_denied', details);
  const bare = root.slice('_p_'.length);
  const readable = allowed.includes(bare);
  // A reference has the sign in front, a key has not: what is told can be written in the place of what was.
  const rewrite = context === 'pipeline reference' || reference.startsWith('$') ? `$${bare}` : bare;
  const hint = readable
    ? ` '${root}' is the storage column of pointer '${bare}'; write "${rewrite}" instead.`
    : ` '${root}' is the storage form of a column; use logical field names.`;
  return accessDenied('fields', outside + hint, 'storage_form_field_ref', {
    ...details,
    ...(readable && { suggested_rewrite: rewrite }),
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
  const { shown, text } = listedAtMost(allowed);
  return accessDenied(
    'fields',
    `${context} '${reference}' names a masked field: it cannot be filtered, sorted, grouped, computed with, followed or ` +
      `written. Use other fields: ${text}`,
    'masked_field',
    { denied_field: root, allowed_fields: shown },
  );
}

/** A row that is not there, or that the caller may not know of: both are told alike. */
export function objectNotFound(className: string, objectId: string): Refusal {
  return parseError(`Object not found: ${className}#${objectId}`);
}

/**
 * One answer for rows of other tenants and for rows that do not exist, or not for the agent: whoever asks by id learns of no
 * row that is not its tenant's.
 */
export function notTenantsRows(className: string, ids: readonly string[], cause?: StrayRows): Refusal {
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
