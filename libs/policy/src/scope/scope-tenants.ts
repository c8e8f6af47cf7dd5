import {
  type Agent,
  type AgentDefinition,
  canonicalClassName,
  type Owner,
  type ScopeTenant,
  type ScopeTenants,
  toDigest,
} from '#core';
import {
  keepsTenantsApart,
  type Policies,
  type Policy,
  PolicyCache,
  type TenantScope,
} from '../model/policy.js';
import { findOwnValue, listAgentValues } from './agent-values.js';
import { findScopeTenant } from './tenant.js';

interface NamedScope {
  /** Scopes of one name give every agent the same tenant. Null: the one of its `tenantId`, which every owner has. */
  readonly name: string | null;
  readonly scope: TenantScope;
}

interface Scopes {
  /** Those that do not go by `tenantId`. */
  readonly byName: ReadonlyMap<string, TenantScope>;
  /** Of classes whose rows are kept apart by tenants; null: by their databases, which go by `tenantId`. */
  readonly ofClasses: ReadonlyMap<string, NamedScope | null>;
}

/** The tenants of agents by the policies that they were admitted under. */
export class TenantsByPolicy implements ScopeTenants {
  private readonly scopes = new PolicyCache(collectScopes);
  private readonly filtered = new PolicyCache((policy) =>
    [...policy.classes.values()].flatMap(({ filters, canonicalFilter }) =>
      listAgentValues([filters, canonicalFilter]),
    ),
  );
  private readonly bypassable = new PolicyCache(({ classes }) =>
    [...classes].flatMap(([className, { tenantScope }]) =>
      typeof tenantScope?.bypass === 'function' ? [[className, tenantScope] as const] : [],
    ),
  );
  private readonly filteredOf = new WeakMap<AgentDefinition, readonly string[]>();

  constructor(private readonly policies: Pick<Policies, 'of'>) {}

  list(agent: Agent): readonly ScopeTenant[] {
    const { byName } = this.scopes.of(this.policies.of(agent));
    return [...byName].flatMap(([name, scope]): readonly ScopeTenant[] => {
      const tenant = findScopeTenant(agent, scope);
      return tenant === null || tenant === undefined ? [] : [[name, tenant]];
    });
  }

  listFiltered(agent: Agent): readonly string[] {
    const names = [...this.filtered.of(this.policies.of(agent)), ...this.listFilteredOf(agent.definition)];
    // The tenant is known of every owner.
    const values = [...new Set(names)].sort().flatMap((name) => {
      const value = name === 'tenant' ? null : findOwnValue(agent, name);
      return value === null ? [] : [`${name}=${JSON.stringify(value)}`];
    });
    // What a function reads of the caller is not known: any claim may decide.
    const claims = hasFunction(agent.definition)
      ? [`claims:${toDigest(JSON.stringify(listClaims(agent)))}`]
      : [];
    return [...values, ...claims, ...this.listBypassed(agent)];
  }

  /** Of a permission level that bypasses a scope every caller of the agent is; a function decides for each. */
  private listBypassed(agent: Agent): readonly string[] {
    return this.bypassable
      .of(this.policies.of(agent))
      .flatMap(([className, scope]) =>
        findScopeTenant(agent, scope) === undefined ? [`all ${className}`] : [],
      );
  }

  private listFilteredOf(definition: AgentDefinition): readonly string[] {
    const known = this.filteredOf.get(definition);
    if (known) return known;
    const { filters, outer } = definition;
    const names = [...listAgentValues([...filters.values()]), ...(outer ? this.listFilteredOf(outer) : [])];
    this.filteredOf.set(definition, names);
    return names;
  }

  shares(viewer: Agent, { tenants = [] }: Pick<Owner, 'tenants'>, classNames: readonly string[]): boolean {
    const { byName, ofClasses } = this.scopes.of(this.policies.of(viewer));
    const held = new Map(tenants);
    const apart = classNames.map(canonicalClassName).filter((name) => ofClasses.has(name));
    if (apart.length > 0) {
      return apart.every((className) => {
        const { name, scope } = ofClasses.get(className) ?? {};
        const own = scope && findScopeTenant(viewer, scope);
        if (own === undefined) return true;
        return own !== null && (name === null || name === undefined || own === held.get(name));
      });
    }
    // Without a class that keeps tenants apart, everything has to be of one tenant.
    return [...new Set([...byName.keys(), ...held.keys()])].every((name) => {
      const scope = byName.get(name);
      const own = scope ? findScopeTenant(viewer, scope) : null;
      return own === undefined || own === (held.get(name) ?? null);
    });
  }
}

/** Members that every token of one person has anew. */
const OF_TOKENS = new Set(['exp', 'iat', 'nbf', 'jti', 'auth_time']);

const listClaims = ({ claims }: Agent) =>
  Object.entries(claims)
    .filter(([name]) => !OF_TOKENS.has(name))
    .sort(([one], [other]) => (one < other ? -1 : 1));

/** Whether an agent, or one above it, has a filter that is code. */
const hasFunction = ({ filters, outer }: AgentDefinition): boolean =>
  [...filters.values()].some((entry) => typeof entry === 'function') ||
  (outer !== null && hasFunction(outer));

function collectScopes(policy: Policy): Scopes {
  const byName = new Map<string, TenantScope>();
  const ofClasses = new Map<string, NamedScope | null>();
  for (const [className, declared] of policy.classes) {
    if (!keepsTenantsApart(declared, policy)) continue;
    const { tenantScope: scope } = declared;
    const name = scope && nameScope(className, scope);
    if (scope && name !== null) byName.set(name, scope);
    ofClasses.set(className, scope && { name, scope });
  }
  return { byName, ofClasses };
}

function nameScope(className: string, { from, bypass }: TenantScope): string | null {
  if (from === 'tenantId') return null;
  if (typeof from === 'function' || typeof bypass === 'function') return `class ${className}`;
  const { claim } = from;
  const path = typeof claim === 'string' ? [claim] : claim;
  return JSON.stringify([path, [...bypass].sort()]);
}
