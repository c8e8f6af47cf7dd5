import { createHash } from 'node:crypto';
import { type Agent, authType, type NameFilter } from '#agent';
import { filteredFields } from '#audit';
import {
  type AgentScope,
  type EnvironmentGates,
  describeMasks,
  isTenantRefusal,
  methodGate,
  tenantBinding,
} from '#policy';
import type { DeclaredMethods } from '#tools';

export interface ListedFilter {
  readonly only: readonly string[] | null;
  readonly except: readonly string[] | null;
}

/** A class as one agent meets it. What does not apply is null. */
export interface DescribedClass {
  /** As Parse names it. */
  readonly class_name: string;
  /** Whether the agent may use it, or what keeps it out. */
  readonly accessible: 'permitted' | 'hidden' | 'class_filter_excluded' | 'misconfigured';
  /** The allowlist of its fields. */
  readonly agent_fields: readonly string[] | null;
  /** The default view of the class. */
  readonly agent_canonical_filter: Readonly<Record<string, unknown>> | null;
  /** Names of the constrained fields; never values. */
  readonly per_agent_filter: readonly string[] | null;
  /** The tenant that every read carries. */
  readonly tenant_scope: { readonly field: string; readonly value: string | number } | null;
  /** Fields that are left out of included rows. */
  readonly large_fields: readonly string[] | null;
  /** Path → what this agent gets in place of the value. Absent: nothing is masked. */
  readonly masked_fields?: Readonly<Record<string, string>>;
  /** Declared methods that the agent may call. */
  readonly agent_methods: readonly string[] | null;
}

export function listedFilter({ only, except }: NameFilter): ListedFilter | null {
  if (!only && !except) return null;
  return { only: only && [...only].sort(), except: except && [...except].sort() };
}

/** How an agent is known, without what would let anyone else be known so. */
export function describedAuth({ identity }: Agent): Readonly<Record<string, string>> {
  const mode = authType(identity);
  switch (identity.kind) {
    case 'sessionToken':
      return { mode, fingerprint: createHash('sha256').update(identity.token).digest('hex').slice(0, 8) };
    case 'aclUser':
      return { mode, identity: identity.userId };
    case 'aclRole':
      return { mode, identity: identity.role };
    case 'master':
      return { mode };
  }
}

const orNull = <T>(list: readonly T[]): readonly T[] | null => (list.length > 0 ? list : null);

export interface ClassDescriptionParts {
  readonly agent: Agent;
  readonly scope: AgentScope;
  readonly methods: DeclaredMethods;
  readonly gates: EnvironmentGates;
}

/** @param className canonical */
export function describedClass(
  { agent, scope, methods, gates }: ClassDescriptionParts,
  className: string,
): DescribedClass {
  const policy = scope.classPolicy(className);
  const { masks } = scope.access(className);
  const tenant = tenantBinding(agent, policy);
  const filters = filteredFields(agent.shape);
  const filtered = [...new Set([...(filters?.['default'] ?? []), ...(filters?.[className] ?? [])])].sort();
  const callable = methods
    .of(className)
    .filter(({ name, permission }) => methodGate(agent, { className, name, permission }, gates) === null)
    .map(({ name }) => name)
    .sort();
  return {
    class_name: className,
    accessible: accessible(agent, scope, className),
    agent_fields: policy.fields,
    agent_canonical_filter: policy.canonicalFilter,
    per_agent_filter: orNull(filtered),
    tenant_scope: tenant === null || isTenantRefusal(tenant) ? null : tenant,
    large_fields: orNull(policy.largeFields),
    ...(masks && { masked_fields: Object.fromEntries(describeMasks(masks)) }),
    agent_methods: orNull(callable),
  };
}

/** The verdict of the class gate; that the class exists is not part of it. */
function accessible(agent: Agent, scope: AgentScope, className: string): DescribedClass['accessible'] {
  const admitted = scope.admit(agent, className);
  if (typeof admitted === 'string') return 'permitted';
  const kind = admitted.details?.kind;
  if (kind === 'misconfigured_class') return 'misconfigured';
  return kind === 'class_filter' ? 'class_filter_excluded' : 'hidden';
}
