import {
  type Agent,
  type AgentDefinition,
  type DataBudget,
  type FilterSubject,
  findRootAgent,
  type Tier,
} from '#core';
import type { TierMasks } from '../masking/compile-masks.js';
import type { Pseudonyms } from '../masking/mask-row.js';
import type { FieldSchema, FieldType, StorageForm } from './class-schema.js';
import type { FieldNames } from './field-names.js';
import type { TenantDatabases } from './tenant-database.js';

/** `no`: not hidden. `exceptMaster`: agents with the master key pass the class gate, and only that gate. */
export type HiddenFrom = 'no' | 'always' | 'exceptMaster';

/** Whether Cloud Code may decide what a user reads (`beforeFind`, `afterFind`): only the operator can know. */
export const READ_HOOKS = ['none', 'possible'] as const;
export type ReadHooks = (typeof READ_HOOKS)[number];

export interface PropertyPolicy {
  readonly type?: string;
  readonly description?: string;
  readonly targetClass?: string;
  /** Allowed value → description. Documentation: reads are not validated. */
  readonly enum?: ReadonlyMap<string, string>;
}

/** The type of `_id` in a plain collection. */
export type IdKind = 'objectId' | 'string' | 'number' | 'uuid';

/** A declared column of a plain class, or a member of one. */
export interface PlainColumn {
  /** Default: what the database says. */
  readonly type?: FieldType;
  /** Pointer: the class whose `_id` the column holds. Array: the class whose ids its entries are. */
  readonly targetClass?: string;
  /** The stored name. Default: the name of the property. */
  readonly field?: string;
  /** Object: its members. Array: the members of its entries. */
  readonly of?: ReadonlyMap<string, PlainColumn>;
}

/** How a class is stored that Parse does not store. Adapters read it; the policy knows its columns by their names alone. */
export interface PlainStorageRules {
  readonly collection: string;
  /** Null: as the documents hold it. */
  readonly id: IdKind | null;
  /** Stored names; null: the class has none. */
  readonly timestamps: { readonly createdAt: string; readonly updatedAt: string } | null;
  /** By the name that agents use. */
  readonly properties: ReadonlyMap<string, PlainColumn>;
}

/** A database beside that of the service. */
export interface FurtherDatabase {
  /** How it stores a class that does not say so. */
  readonly storage: StorageForm;
  /** Whether it is only read. */
  readonly readOnly: boolean;
  /** Absent: it is one database. */
  readonly tenants?: TenantDatabases;
}

/** Returns the tenant of an agent; null or undefined: none, and the class is refused. */
type TenantFunction = (agent: FilterSubject) => string | number | null | undefined;

/** Whether an agent bypasses the scope. An error, and any result but `true`, means no. */
export type BypassFunction = (agent: FilterSubject) => boolean;

/** The source of an agent's tenant: its `tenantId`, a claim of its caller (a name or a path of names), or a function. */
export type TenantSource = 'tenantId' | { readonly claim: string | readonly string[] } | TenantFunction;

export interface TenantScope {
  /** The column that holds the tenant. */
  readonly field: string;
  readonly from: TenantSource;
  /** Permission levels that bypass the scope, or a function that decides for each agent. */
  readonly bypass: readonly string[] | BypassFunction;
  /** What the schema says about the column of a bound plain class. */
  readonly column?: FieldSchema;
}

/** Whether no tenant reads rows of another one in the class: by their values, or because each tenant has its own database. */
export function keepsTenantsApart(
  { tenantScope, database }: Pick<DeclaredClass, 'tenantScope' | 'database'>,
  { databases }: Pick<Policy, 'databases'>,
): boolean {
  return tenantScope !== null || databases.get(database ?? '')?.tenants !== undefined;
}

/** Whether a whole permission level bypasses the scope. A function needs an agent and counts as no. */
export function tierBypasses({ bypass }: TenantScope, tier: Tier): boolean {
  return typeof bypass !== 'function' && bypass.includes(tier);
}

/** A class with vector search. */
export interface SearchablePolicy {
  /** The column of the vector. Not readable unless `fields` lists it. */
  readonly field: string;
  /** Fields that a search may filter on; the vector index must support them. */
  readonly filterFields: readonly string[];
  /** The fields whose text was embedded; `null`: not declared. */
  readonly textFields: readonly string[] | null;
  /** Name of the vector index. */
  readonly index: string;
}

export const DEFAULT_SEARCH_INDEX = 'default';
export const DEFAULT_VECTOR_INDEX = 'vector_index';

/**
 * The declaration of one class with field names as written. `bindClass` resolves them with a schema; no access decision uses
 * this form.
 */
export interface DeclaredClass {
  readonly className: string;
  /** Name of the database that holds its rows; null: that of the service. */
  readonly database: string | null;
  /** Null: Parse stores it. */
  readonly plain: PlainStorageRules | null;
  readonly hiding: HiddenFrom;
  readonly visible: boolean;
  readonly description: string | null;
  readonly usage: string | null;
  /** Readable fields without `ALWAYS_KEEP`; `null` when the class has no allowlist. */
  readonly fields: readonly string[] | null;
  readonly joinFields: readonly string[] | null;
  readonly largeFields: readonly string[];
  /** By field or path inside one: the masks for each permission level. */
  readonly masks: ReadonlyMap<string, TierMasks>;
  readonly canonicalFilter: Readonly<Record<string, unknown>> | null;
  /** The row filter of every agent. */
  readonly filters: Readonly<Record<string, unknown>> | null;
  readonly tenantScope: TenantScope | null;
  readonly allowCollscan: boolean;
  /** Whether Cloud Code may decide what a user reads of it; `null`: as the Parse Server in general. */
  readonly readHooks: ReadHooks | null;
  /** `null` when the class has no vector search. */
  readonly searchable: SearchablePolicy | null;
  /** Name of the Atlas Search index that full-text search uses. */
  readonly searchIndex: string;
  readonly properties: ReadonlyMap<string, PropertyPolicy>;
  /** Declared spelling → column, from `properties.<name>.field`. Empty for a plain class: its adapter renames columns. */
  readonly aliases: ReadonlyMap<string, string>;
}

/** The declaration of one class of a schema: every field name is that of a column. */
export interface ClassPolicy extends DeclaredClass {
  /** Resolves any other name. */
  readonly names: FieldNames;
}

/** Process-wide switches (docs/reference/policy-options.md#switches). */
export interface PolicySwitches {
  /** What a class of the database without an entry in `classes` is: a class like others, or none. */
  readonly unlistedClasses: 'allow' | 'refuse';
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
  /** An agent with the rights of a role reads rows that name the role, not those that name `*`. */
  readonly strictRole: boolean;
  readonly promptMarkerStrict: boolean;
  readonly promptInjectionCanaries: readonly string[];
  readonly canaryAction: 'notify' | 'refuse' | null;
  readonly tokenCostPerMillionInput: number | null;
  readonly embedCostPerMillionTokens: number | null;
  /** What built-in tools do with arguments that they do not declare. */
  readonly unknownArguments: 'refuse' | 'ignore';
  /** Lists of tools contain those that cannot work for the agent as well. */
  readonly listAllTools: boolean;
  /** The text of a result is JSON indented by two spaces instead of compact JSON. */
  readonly prettyText: boolean;
  /** Levels of sub-agents below an agent without a limit of its own. */
  readonly defaultRecursionDepth: number;
  /** Calls that the operation log keeps. */
  readonly maxLogSize: number;
  /** A bare id in `$in`/`$nin` on a pointer column of unknown class is refused instead of silently matching nothing. */
  readonly strictPointerShapes: boolean;
}

/** The compiled policy. */
export interface Policy {
  /** Digest of the declarations; changes when the policy changes. */
  readonly version: string;
  /** How the database stores a class that does not say so. */
  readonly storage: StorageForm;
  /** Whether the database is only read. */
  readonly readOnly: boolean;
  /** The further databases of the service, by name. */
  readonly databases: ReadonlyMap<string, FurtherDatabase>;
  readonly switches: PolicySwitches;
  /** The data budget of each tenant, over all its agents. */
  readonly tenantBudget: DataBudget | null;
  /** By canonical class name, with names as written. */
  readonly classes: ReadonlyMap<string, DeclaredClass>;
  /** Whether a class is declared visible: listings and the relation graph then contain visible classes only. */
  readonly hasVisibleClasses: boolean;
  readonly hasTenantScopes: boolean;
  /** Computes the pseudonyms of hashed values; null without a `maskingKey`, and so without hashed fields. */
  readonly pseudonyms: Pseudonyms | null;
}

/**
 * The policy versions: the current one, and for each agent the one under which it was admitted. A call keeps its policy until
 * it ends. A policy never changes.
 */
export class Policies {
  private readonly ofDefinitions = new WeakMap<AgentDefinition, Policy>();
  private readonly ofAgents = new WeakMap<Agent, Policy>();
  private latest: Policy;

  /** @param definitions the agent definitions that were configured with it */
  constructor(first: Policy, definitions: Iterable<AgentDefinition> = []) {
    this.latest = first;
    this.adopt(first, definitions);
  }

  /** The policy for new agents. */
  get current(): Policy {
    return this.latest;
  }

  /** Makes this policy the current one. @param definitions its agent definitions; none may belong to an earlier policy */
  adopt(policy: Policy, definitions: Iterable<AgentDefinition>): void {
    for (const definition of definitions) this.ofDefinitions.set(definition, policy);
    this.latest = policy;
  }

  /** The policy of an agent. Sub-agents have that of their root agent; an agent without a configured definition keeps its first. */
  of(agent: Agent): Policy {
    const root = findRootAgent(agent);
    const known = this.ofDefinitions.get(root.definition) ?? this.ofAgents.get(root);
    if (known) return known;
    this.ofAgents.set(root, this.latest);
    return this.latest;
  }
}

/** A value compiled from a policy, cached while that policy is in use. */
export class PolicyCache<T> {
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
