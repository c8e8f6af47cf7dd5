import {
  type ClassFilters,
  type FilterEntry,
  NameFilter,
  type NameFilterOptions,
  parseClassFilters,
  readNameFilter,
} from './filters.js';
import { canonicalClassName, type ClassReference, nameClassReferences } from './class-names.js';
import { impersonationLabel, type Tier } from './identity.js';
import { type BudgetOptions, compileBudget, type DataBudget } from './data-budget.js';
import {
  type AgentRateLimiter,
  DEFAULT_RATE_LIMIT,
  InjectedRateLimiter,
  ProcessRateLimiters,
  type RateLimit,
  type RateLimiter,
  type RateLimiters,
} from './limits.js';

/** Levels of sub-agents when neither the agent nor the policy sets a limit. */
const DEFAULT_RECURSION_DEPTH = 4;

/** Tools by name, or a named list of them. */
export type ToolFilterOptions = NameFilterOptions | { readonly profile: 'lean' };

/** When the writes of an agent happen. */
export const WRITE_MODES = ['direct', 'proposed'] as const;
/** One of `WRITE_MODES`. */
export type WriteMode = (typeof WRITE_MODES)[number];

/** The options of a named agent, as written in the configuration (docs/reference/configuration.md#agents). */
export interface AgentDefinitionOptions {
  /** The highest permission level of its tools. Default `readonly`. */
  readonly permissions?: Tier;
  /** Which tools it may call. Default: all that its permission level and the environment gates permit. */
  readonly tools?: ToolFilterOptions;
  /** Which declared methods it may call, as `Class.method` or `method`. Default: all of its permission level. */
  readonly methods?: NameFilterOptions;
  /**
   * Which of the classes that the policy shows it may use. In code also classes with `@ParseClass` and Mongoose models. Default:
   * all of them.
   */
  readonly classes?: NameFilterOptions<ClassReference>;
  /** Constraints per class name, plus `default`, that are added to every read. In code also functions of the agent. */
  readonly filters?: Readonly<Record<string, FilterEntry>>;
  /** The tenant whose rows it reads of classes with a tenant scope. Default and null: such classes are refused. */
  readonly tenantId?: string | number | null;
  /** May create, change and delete rows directly, if the environment gates permit it. Default: not in client mode. */
  readonly allowMutations?: boolean;
  /**
   * `direct`: writes happen when they are called. `proposed`: they wait in a change set until a person has approved all of it. Default
   * `direct`.
   */
  readonly writes?: WriteMode;
  /** Acts like a client without the master key: tools that are not `clientSafe` are refused. Default false. */
  readonly clientMode?: boolean;
  /** May count facets, which row filters cannot narrow. Null: as its parent, false without one. */
  readonly masterAtlas?: boolean | null;
  /** Maximum bytes of the text of a result. Default and null: as its parent, else as the service. */
  readonly maxResultBytes?: number | null;
  /** Calls of a principal within `rateWindow`. Default 60. */
  readonly rateLimit?: number;
  /** Seconds. Default 60. */
  readonly rateWindow?: number;
  /** Replaces the limiter built from `rateLimit` and `rateWindow`. */
  readonly rateLimiter?: AgentRateLimiter;
  /** How much data a principal may use. Default: no limit. */
  readonly budget?: BudgetOptions | null;
  /** Levels of sub-agents below it. Default 4. */
  readonly recursionDepth?: number;
  /** The reason for an assumed identity, for audit records. Text of at most 128 characters; anything else is ignored. */
  readonly impersonationLabel?: string | null;
  /** Unknown names in `tools` are errors instead of warnings. Default: the policy's switch. */
  readonly strictToolFilter?: boolean;
  /** The same for unknown names in `classes.only`. */
  readonly strictClassFilter?: boolean;
}

/** A tenant scope of the policy, and the tenant that an agent has by it. */
export type ScopeTenant = readonly [scope: string, tenant: string | number];

/** The tenants of agents by scopes of classes that take them from a claim or a function, and not from `tenantId`; and what else decides of its rows. */
export interface ScopeTenants {
  /** Those of an `Agent`; a scope that it bypasses binds it to none. */
  list(agent: object): readonly ScopeTenant[];
  /** What filters of rows and bypasses of scopes decide by, besides the `tenantId` of an `Agent`. */
  listFiltered(agent: object): readonly string[];
  /**
   * Whether what an owner does with these classes is of a tenant of the viewer, an `Agent`. A viewer without the tenant of a scope
   * sees nothing of it.
   * @param classNames empty: it is not known which classes
   */
  shares(
    viewer: object,
    owner: { readonly tenants?: readonly ScopeTenant[] },
    classNames: readonly string[],
  ): boolean;
}

/** A named agent of the configuration: its limits, compiled once and shared by every `Agent` with this definition. */
export interface AgentDefinition {
  readonly name: string;
  readonly permissions: Tier;
  readonly tools: NameFilter;
  readonly methods: NameFilter;
  /** Over canonical class names. */
  readonly classes: NameFilter;
  /** Its own filters; those of `outer` apply as well. */
  readonly filters: ClassFilters;
  readonly tenantId: string | number | null;
  /** Its tenants by scopes that do not go by `tenantId`; null: the policy is not known. */
  readonly tenants: ScopeTenants | null;
  readonly allowMutations: boolean;
  readonly writes: WriteMode;
  /** May take its own recorded writes back, where they happen at once. */
  readonly undoesWrites: boolean;
  readonly clientMode: boolean;
  readonly masterAtlas: boolean;
  /** Maximum bytes of the text of a result; null: that of the service. */
  readonly maxResultBytes: number | null;
  readonly rateLimiter: RateLimiter;
  /** The limit of `rateLimiter`; null for an injected one. */
  readonly rate: RateLimit | null;
  /** Creates its limiters and those of its sub-agents. */
  readonly limiters: RateLimiters;
  /** Data budget of a principal; sub-agents share that of the root agent. */
  readonly budget: DataBudget | null;
  readonly recursionDepth: number;
  readonly impersonationLabel: string | null;
  readonly strictToolFilter: boolean | null;
  readonly strictClassFilter: boolean | null;
  /** The definition of the parent of a sub-agent: nothing here permits more than it. */
  readonly outer: AgentDefinition | null;
}

const LEAN_TOOLS = [
  'get_all_schemas',
  'get_schema',
  'query_class',
  'count_objects',
  'get_object',
  'aggregate',
];
const PROFILES = { lean: LEAN_TOOLS };
/** The named lists of tools. */
export const TOOL_PROFILES: readonly string[] = Object.keys(PROFILES);

function readToolFilter(options: ToolFilterOptions | undefined): NameFilter {
  const profile = options && 'profile' in options ? options.profile : undefined;
  return readNameFilter(profile === undefined ? (options as NameFilterOptions) : PROFILES[profile]);
}

function readRate({ rateLimiter, rateLimit, rateWindow }: AgentDefinitionOptions): RateLimit | null {
  if (rateLimiter) {
    if (typeof rateLimiter.check === 'function') return null;
    throw new TypeError('rateLimiter: expected a check operation');
  }
  return {
    limit: rateLimit ?? DEFAULT_RATE_LIMIT.limit,
    window: rateWindow ?? DEFAULT_RATE_LIMIT.window,
  };
}

/**
 * The same definition with a rate limiter of `limiters`; an injected limiter stays. Called once, before agents are created
 * from it.
 */
export function withRateLimiters(definition: AgentDefinition, limiters: RateLimiters): AgentDefinition {
  const { rate, name } = definition;
  return Object.freeze({
    ...definition,
    limiters,
    ...(rate && { rateLimiter: limiters.limiter(`agent ${name}`, rate) }),
  });
}

/** The same definition of an agent under policies. */
export const withScopeTenants = (definition: AgentDefinition, tenants: ScopeTenants): AgentDefinition =>
  Object.freeze({ ...definition, tenants });

/** The same definition of an agent that may take its own recorded writes back. */
export const withUndoneWrites = (definition: AgentDefinition): AgentDefinition =>
  Object.freeze({ ...definition, undoesWrites: true });

/**
 * @param options checked by the schema of the configuration, those that code gives as well
 * @throws TypeError naming the option that cannot be meant
 */
export function compileAgentDefinition(name: string, options: AgentDefinitionOptions = {}): AgentDefinition {
  const clientMode = options.clientMode ?? false;
  const rate = readRate(options);
  const limiters = new ProcessRateLimiters();
  return Object.freeze({
    name,
    permissions: options.permissions ?? 'readonly',
    tools: readToolFilter(options.tools),
    methods: readNameFilter(options.methods),
    classes: readNameFilter(nameClassReferences(options.classes) as NameFilterOptions).mapNames(
      canonicalClassName,
    ),
    filters: parseClassFilters(options.filters),
    tenantId: options.tenantId ?? null,
    tenants: null,
    allowMutations: options.allowMutations ?? !clientMode,
    writes: options.writes ?? 'direct',
    undoesWrites: false,
    clientMode,
    masterAtlas: options.masterAtlas ?? false,
    maxResultBytes: options.maxResultBytes ?? null,
    rateLimiter: rate
      ? limiters.limiter(`agent ${name}`, rate)
      : new InjectedRateLimiter(options.rateLimiter as AgentRateLimiter),
    rate,
    limiters,
    budget: compileBudget(options.budget),
    recursionDepth: options.recursionDepth ?? DEFAULT_RECURSION_DEPTH,
    impersonationLabel: impersonationLabel(options.impersonationLabel),
    strictToolFilter: options.strictToolFilter ?? null,
    strictClassFilter: options.strictClassFilter ?? null,
    outer: null,
  });
}
