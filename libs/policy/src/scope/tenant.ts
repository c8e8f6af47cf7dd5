import { type Agent, type Refusal, refusals } from '#agent';
import type { ClassPolicy } from '../model/class-policy.js';
import type { FieldNames } from '../model/field-names.js';
import type { Where } from '../model/where.js';

/** The tenant an agent is bound to on one class. */
export interface TenantBinding {
  readonly field: string;
  readonly value: string | number;
}

function isRefusal(value: TenantBinding | Refusal | null): value is Refusal {
  return value !== null && 'gate' in value;
}

/** Blank, missing and non-scalar bindings count as none. */
function boundTenant(agent: Agent): string | number | null {
  const { tenantId } = agent;
  if (typeof tenantId === 'number') return Number.isFinite(tenantId) ? tenantId : null;
  return typeof tenantId === 'string' && tenantId.trim() !== '' ? tenantId : null;
}

/**
 * The binding that every read of the class must carry; null when the class is not scoped for this agent. A sub-agent is
 * held to what holds for its parent, whatever its own tier would bypass.
 */
export function tenantBinding(agent: Agent, policy: ClassPolicy): TenantBinding | Refusal | null {
  const own = ownBinding(agent, policy);
  if (!agent.parent || isRefusal(own)) return own;
  const inherited = tenantBinding(agent.parent, policy);
  return isRefusal(inherited) ? inherited : (own ?? inherited);
}

function ownBinding(agent: Agent, policy: ClassPolicy): TenantBinding | Refusal | null {
  const scope = policy.tenantScope;
  if (!scope || scope.bypass.includes(agent.permissions)) return null;
  const value = boundTenant(agent);
  if (value !== null) return { field: scope.field, value };
  return refusals.accessDenied(
    'tenant',
    `Class '${policy.className}' is scoped by tenant and this agent has no tenant binding`,
    'tenant_scope',
  );
}

/**
 * A caller may repeat its own tenant, under any spelling; anything else on that field is a conflict.
 * The predicate itself is always added, whatever the caller wrote.
 */
export function tenantConflict(
  binding: TenantBinding,
  callerWhere: unknown,
  names: FieldNames,
  className: string,
): Refusal | null {
  if (callerWhere === null || typeof callerWhere !== 'object' || Array.isArray(callerWhere)) return null;
  for (const [key, value] of Object.entries(callerWhere)) {
    if (key.startsWith('$') || names.wireName(key) !== binding.field) continue;
    if (value !== binding.value) {
      return refusals.accessDenied('tenant', `Tenant scope conflict on class '${className}'`, 'tenant_scope');
    }
  }
  return null;
}

export function tenantWhere(binding: TenantBinding | null): Where | null {
  return binding && { [binding.field]: binding.value };
}

/** After a fetch by id: the row must be the tenant's own. A missing value is a mismatch. */
export function foreignRow(
  binding: TenantBinding,
  row: Readonly<Record<string, unknown>>,
  className: string,
): Refusal | null {
  return row[binding.field] === binding.value
    ? null
    : refusals.accessDenied(
        'tenant',
        `The requested object of class '${className}' belongs to another tenant`,
        'tenant_scope',
      );
}

export { isRefusal as isTenantRefusal };
