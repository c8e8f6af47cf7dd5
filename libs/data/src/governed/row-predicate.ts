import { type Agent, Refused, type Refusal } from '#agent';
import {
  type AgentScope,
  allOf,
  isTenantRefusal,
  type TenantBinding,
  tenantBinding,
  tenantWhere,
  type Where,
} from '#policy';

/** Which rows of a class exist for an agent: what every read of it carries, however the class is reached. */
export interface RowPredicate {
  readonly tenant: TenantBinding | null;
  /** Tenant and agent filter; the canonical filter too when asked for. */
  readonly where: Where;
}

export function rowPredicate(
  agent: Agent,
  scope: AgentScope,
  className: string,
  options: { readonly canonical: boolean },
): RowPredicate | Refusal {
  const tenant = tenantBinding(agent, scope.classPolicy(className));
  if (isTenantRefusal(tenant)) return tenant;
  const where = allOf(
    tenantWhere(tenant),
    scope.agentFilter(className),
    options.canonical ? scope.canonicalFilter(className) : null,
  );
  return { tenant, where };
}

export function rowPredicateOrThrow(...args: Parameters<typeof rowPredicate>): RowPredicate {
  const predicate = rowPredicate(...args);
  if ('gate' in predicate) throw new Refused(predicate);
  return predicate;
}
