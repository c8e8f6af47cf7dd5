import { type Agent, type Refusal, refusals } from '#agent';
import { type ClassPolicy, type TenantScope, type TenantSource, tierBypasses } from '../model/policy.js';
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

/** Blank, missing and non-scalar values, and functions that throw, bind to none. */
function boundTenant(agent: Agent, from: TenantSource): string | number | null {
  const tenant = tenantFrom(agent, from);
  if (typeof tenant === 'number') return Number.isFinite(tenant) ? tenant : null;
  return typeof tenant === 'string' && tenant.trim() !== '' ? tenant : null;
}

function tenantFrom(agent: Agent, from: TenantSource): unknown {
  if (from === 'tenantId') return agent.tenantId;
  if (typeof from === 'function') return answered(() => from(agent));
  const { claim } = from;
  let value: unknown = agent.claims;
  for (const name of typeof claim === 'string' ? [claim] : claim) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, name)) return null;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}

function isBypassed(agent: Agent, scope: TenantScope): boolean {
  const { bypass } = scope;
  return typeof bypass === 'function'
    ? answered(() => bypass(agent)) === true
    : tierBypasses(scope, agent.permissions);
}

/** What the operator's function answers; null when it throws. */
function answered<T>(ask: () => T): T | null {
  try {
    return ask();
  } catch {
    return null;
  }
}

/**
 * The binding that every read of the class must carry; null when the class is not scoped for this agent. A sub-agent is
 * held to what holds for its parent, whatever its own tier would bypass.
 */
export function tenantBinding(agent: Agent, policy: ClassPolicy): TenantBinding | Refusal | null {
  const own = ownBinding(agent, policy);
  if (!agent.parent || isRefusal(own)) return own;
  const inherited = tenantBinding(agent.parent, policy);
  if (isRefusal(inherited) || own === null) return inherited;
  // A function may answer otherwise for the sub-agent: it is never of another tenant than its parent.
  return inherited !== null && inherited.value !== own.value ? unbound(policy) : own;
}

function ownBinding(agent: Agent, policy: ClassPolicy): TenantBinding | Refusal | null {
  const scope = policy.tenantScope;
  if (!scope || isBypassed(agent, scope)) return null;
  const value = boundTenant(agent, scope.from);
  return value === null ? unbound(policy) : { field: scope.field, value };
}

function unbound(policy: ClassPolicy): Refusal {
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
export function isOwnRow(binding: TenantBinding, row: Readonly<Record<string, unknown>>): boolean {
  return row[binding.field] === binding.value;
}

export { isRefusal as isTenantRefusal };
