import { type Agent, type Refusal, refusals } from '#core';
import { isRefusal } from '../model/class-access.js';
import type { FieldNames } from '../model/field-names.js';
import { type ClassPolicy, type TenantScope, type TenantSource, tierBypasses } from '../model/policy.js';
import type { FieldSchema } from '../model/class-schema.js';
import { isPointer, pointer, type Where } from '../model/where.js';
import { exactOperand } from '../where/column-values.js';
import { claimAt } from './agent-values.js';

/** The tenant that an agent is bound to on one class. */
export interface TenantBinding {
  readonly field: string;
  readonly value: string | number;
  /**
   * Set in a plain class, whose tenants may be ids, numbers or references: what its column is compared with in the database. Rows that
   * were read are compared by their texts.
   */
  readonly operand?: unknown;
}

/** Whether a value of the column is the tenant of the agent. A missing value is not. */
export function isTenant({ value: own, operand }: TenantBinding, value: unknown): boolean {
  if (value === own) return true;
  if (operand === undefined) return false;
  const id = isPointer(value) ? value['objectId'] : value;
  return (typeof id === 'string' || typeof id === 'number') && String(id) === String(own);
}

/** The tenant as a write stores it. */
export function tenantValue({ value }: TenantBinding, column: FieldSchema | undefined): unknown {
  if (column?.type !== 'Pointer' || column.targetClass === undefined) return value;
  return pointer(column.targetClass, String(value));
}

/** Null for blank, missing and non-scalar values, and for functions that throw. */
function requireTenant(agent: Agent, from: TenantSource): string | number | null {
  const tenant = tenantFrom(agent, from);
  if (typeof tenant === 'number') return Number.isFinite(tenant) ? tenant : null;
  return typeof tenant === 'string' && tenant.trim() !== '' ? tenant : null;
}

function tenantFrom(agent: Agent, from: TenantSource): unknown {
  if (from === 'tenantId') return agent.tenantId;
  if (typeof from === 'function') return valueOrNull(() => from(agent));
  const { claim } = from;
  return claimAt(agent.claims, typeof claim === 'string' ? [claim] : claim);
}

function isBypassed(agent: Agent, scope: TenantScope): boolean {
  const { bypass } = scope;
  return typeof bypass === 'function'
    ? valueOrNull(() => bypass(agent)) === true
    : tierBypasses(scope, agent.permissions);
}

/** The result of a function of the operator; null when it throws. */
function valueOrNull<T>(call: () => T): T | null {
  try {
    return call();
  } catch {
    return null;
  }
}

/**
 * The tenant binding of every read of the class; null when the scope does not apply to this agent. The binding of its parent
 * applies to a sub-agent, even when its own permission level bypasses the scope.
 */
export function tenantBinding(agent: Agent, policy: ClassPolicy): TenantBinding | Refusal | null {
  const scope = policy.tenantScope;
  const value = scope ? findScopeTenant(agent, scope) : undefined;
  if (!scope || value === undefined) return null;
  if (value === null) return unbound(policy);
  if (!policy.plain) return { field: scope.field, value };
  const operand = exactOperand(value, scope.column);
  return operand === null ? unbound(policy) : { field: scope.field, value, operand };
}

/** The tenant of an agent, and of its parents, by a scope; undefined: the scope does not apply to them, null: they have none. */
export function findScopeTenant(agent: Agent, scope: TenantScope): string | number | null | undefined {
  const own = isBypassed(agent, scope) ? undefined : requireTenant(agent, scope.from);
  if (!agent.parent || own === null) return own;
  const inherited = findScopeTenant(agent.parent, scope);
  if (inherited === null || own === undefined) return inherited;
  // A function may return another tenant for the sub-agent, which must be of the same tenant as its parent.
  return inherited !== undefined && inherited !== own ? null : own;
}

function unbound(policy: ClassPolicy): Refusal {
  return refusals.accessDenied(
    'tenant',
    `Class '${policy.className}' is scoped by tenant and this agent has no tenant binding`,
    'tenant_scope',
  );
}

/**
 * A caller may repeat its own tenant, in any spelling of the field; anything else on that field is a conflict. The tenant
 * predicate is always added.
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
    if (!isTenant(binding, value)) {
      return refusals.accessDenied('tenant', `Tenant scope conflict on class '${className}'`, 'tenant_scope');
    }
  }
  return null;
}

/** What the column of the tenant is compared with. */
export function tenantOperand({ value, operand = value }: TenantBinding): unknown {
  return operand;
}

export function tenantWhere(binding: TenantBinding): Where {
  return { [binding.field]: tenantOperand(binding) };
}

/** What the column has to meet beside `tenantWhere`, which also finds a list that contains the tenant. For MongoDB alone. */
export function excludeLists({ field }: TenantBinding): Where {
  return { [field]: { $not: { $type: 'array' } } };
}

/** After a fetch by id: whether the row is of the tenant. A missing value is not. */
export function isOwnRow(binding: TenantBinding, row: Readonly<Record<string, unknown>>): boolean {
  return isTenant(binding, row[binding.field]);
}

export { isRefusal as isTenantRefusal };
