import type { Agent, AgentShape, DataBudget, FilterSubject, Tier } from '#agent';
import type { TierMasks } from '../masking/column-masks.js';
import type { Pseudonyms } from '../masking/mask-row.js';
import type { FieldNames } from './field-names.js';

/** `no`: not hidden. `exceptMaster`: true master posture passes the class gate, and only that gate. */
export type Hiding = 'no' | 'always' | 'exceptMaster';

export interface PropertyPolicy {
  readonly type?: string;
  readonly description?: string;
  readonly targetClass?: string;
  /** Allowed value → what it means. Documents, does not validate reads. */
  readonly enum?: ReadonlyMap<string, string>;
}

/** Which tenant an agent is bound to; null or undefined: none, and the class is refused. */
export type TenantFunction = (agent: FilterSubject) => string | number | null | undefined;

/** Whether the scope does not apply to an agent. What it throws, and anything but true, is a no. */
export type BypassFunction = (agent: FilterSubject) => boolean;

/** Where the tenant of an agent comes from: its `tenantId`, a claim of its caller (a name, or names that lead inward), a function. */
export type TenantSource = 'tenantId' | { readonly claim: string | readonly string[] } | TenantFunction;

export interface TenantScope {
  /** The column that holds the tenant. */
  readonly field: string;
  readonly from: TenantSource;
  /** Tiers for which the scope does not apply, or a function that decides for each agent. */
  readonly bypass: readonly string[] | BypassFunction;
}

/** Whether every agent of a tier is outside of the scope. A function is asked with an agent at hand alone. */
export function tierBypasses({ bypass }: TenantScope, tier: Tier): boolean {
  return typeof bypass !== 'function' && bypass.includes(tier);
}

/** A class whose rows are compared by a stored vector. */
export interface SearchablePolicy {
  /** Holds the vector. Not readable unless `fields` lists it. */
  readonly field: string;
  /** What a search may filter on, and what the vector index can filter on. */
  readonly filterFields: readonly string[];
  /** Whose text the vector stands for; `null`: not said. */
  readonly textFields: readonly string[] | null;
  /** Name of the vector index. */
  readonly index: string;
}

export const DEFAULT_SEARCH_INDEX = 'default';
export const DEFAULT_VECTOR_INDEX = 'vector_index';

/**
 * What an operator declared for one class, with every field name as it was written: which columns they mean is known only
 * beside a schema (`bindClass`). Nothing decides by it.
 */
export interface DeclaredClass {
  readonly className: string;
  readonly hiding: Hiding;
  readonly visible: boolean;
  readonly description: string | null;
  readonly usage: string | null;
  /** Readable fields without the always-kept three; `null` when the class has no allowlist. */
  readonly fields: readonly string[] | null;
  readonly joinFields: readonly string[] | null;
  readonly largeFields: readonly string[];
  /** By field or path inside one: what each tier gets in place of the value. */
  readonly masks: ReadonlyMap<string, TierMasks>;
  readonly canonicalFilter: Readonly<Record<string, unknown>> | null;
  readonly tenantScope: TenantScope | null;
  readonly allowCollscan: boolean;
  /** `null` when the class is not searched by likeness. */
  readonly searchable: SearchablePolicy | null;
  /** Name of the Atlas Search index that full-text search uses. */
  readonly searchIndex: string;
  readonly properties: ReadonlyMap<string, PropertyPolicy>;
  /** Declared spelling → column, from `properties.<name>.field`. */
  readonly aliases: ReadonlyMap<string, string>;
}

/** What an operator declared for one class of a schema: every field name is that of a column. */
export interface ClassPolicy extends DeclaredClass {
  /** What any other name means. */
  readonly names: FieldNames;
}

/** Process-wide switches (docs/policy.md#switches). */
export interface PolicySwitches {
  readonly requireApprovalFor: readonly string[];
  readonly refuseCollscan: boolean;
  readonly exposeExplain: boolean;
  readonly concealHidden: boolean;
  readonly agentDebug: boolean;
  readonly includeSourceProvenance: boolean;
  readonly neutralizeFormulas: boolean;
  readonly strictToolFilter: boolean;
  readonly strictClassFilter: boolean;
  readonly suppressMasterKeyWarning: boolean;
  /** An agent with the rights of a role reads what names the role, not what names everyone. */
  readonly strictRole: boolean;
  readonly promptMarkerStrict: boolean;
  readonly promptInjectionCanaries: readonly string[];
  readonly canaryAction: 'notify' | 'refuse' | null;
  readonly tokenCostPerMillionInput: number | null;
  readonly embedCostPerMillionTokens: number | null;
  /** What built-in tools do with arguments that they do not declare. */
  readonly unknownArguments: 'refuse' | 'ignore';
  /** Levels of sub-agents below an agent that says nothing itself. */
  readonly defaultRecursionDepth: number;
  /** Calls that the operation log keeps. */
  readonly maxLogSize: number;
  /** A bare id in `$in`/`$nin` on a pointer column of unknown class is refused instead of silently matching nothing. */
  readonly strictPointerShapes: boolean;
}

/** The compiled policy: one lookup per class, whatever the number of classes. */
export interface Policy {
  /** Digest of what was declared; changes when the policy changes. */
  readonly version: string;
  readonly switches: PolicySwitches;
  /** What each tenant may take of the data, over all its agents. */
  readonly tenantBudget: DataBudget | null;
  /** By canonical class name, with names as written. */
  readonly classes: ReadonlyMap<string, DeclaredClass>;
  /** Some class is declared visible: listings and the relation graph are limited to visible classes. */
  readonly hasVisibleClasses: boolean;
  readonly hasTenantScopes: boolean;
  /** Names for hashed values; null when there is no `maskingKey`, and so no hashed field. */
  readonly pseudonyms: Pseudonyms | null;
}

/**
 * The policy that is served, and for each agent the one it was admitted under: a call keeps its policy to its end, however
 * many came since. Policies themselves never change.
 */
export class Policies {
  private readonly ofShapes = new WeakMap<AgentShape, Policy>();
  private readonly ofAgents = new WeakMap<Agent, Policy>();
  private latest: Policy;

  /** @param shapes the agents that were configured together with it */
  constructor(first: Policy, shapes: Iterable<AgentShape> = []) {
    this.latest = first;
    this.adopt(first, shapes);
  }

  /** What agents are admitted under now. */
  get current(): Policy {
    return this.latest;
  }

  /** From now on agents are admitted under this one. @param shapes as for the first; none that an earlier one had */
  adopt(policy: Policy, shapes: Iterable<AgentShape>): void {
    for (const shape of shapes) this.ofShapes.set(shape, policy);
    this.latest = policy;
  }

  /** Sub-agents are under the policy of the agent at their root. One whose shape no configuration made keeps what it meets first. */
  of(agent: Agent): Policy {
    const root = rootAgentOf(agent);
    const known = this.ofShapes.get(root.shape) ?? this.ofAgents.get(root);
    if (known) return known;
    this.ofAgents.set(root, this.latest);
    return this.latest;
  }
}

function rootAgentOf(agent: Agent): Agent {
  let root = agent;
  while (root.parent) root = root.parent;
  return root;
}

/** Something compiled from a policy: once, for as long as that policy is in use. */
export class PerPolicy<T> {
  private readonly made = new WeakMap<Policy, { readonly value: T }>();

  constructor(private readonly compile: (policy: Policy) => T) {}

  of(policy: Policy): T {
    const known = this.made.get(policy);
    if (known) return known.value;
    const value = this.compile(policy);
    this.made.set(policy, { value });
    return value;
  }
}

/** A declaration that cannot be meant: where it stands and what is wrong. */
export interface PolicyFault {
  readonly path: string;
  readonly message: string;
  /** Other options that this depends on. */
  readonly related?: readonly string[];
}
