import { type ClassFilters, type FilterEntry, parseClassFilters } from './class-filters.js';
import { canonicalClassName } from './class-names.js';
import { impersonationLabel } from './identity-options.js';
import { type BudgetOptions, compileBudget, type DataBudget } from './data-budget.js';
import {
  type NameFilter,
  NameFilter as Filter,
  type NameFilterOptions,
  parseNameFilter,
} from './name-filter.js';
import { ProcessRateLimiters } from './process-rate-limiter.js';
import { DEFAULT_RATE_LIMIT, type RateLimit, type RateLimiter, type RateLimiters } from './rate-limiter.js';
import { isTier, type Tier } from './tier.js';

/** Sub-agents of sub-agents below a root, when neither agent nor policy says otherwise. */
export const DEFAULT_RECURSION_DEPTH = 4;

/** Which tools: by their names, or a named list of them. */
export type ToolFilterOptions = NameFilterOptions | { readonly profile: 'lean' };

/** The options of a named agent, as written in the configuration (docs/configuration.md#agents). */
export interface AgentShapeOptions {
  /** The tier of its tools at most. Default `readonly`. */
  readonly permissions?: Tier;
  /** Another spelling of `permissions`; both at once are an error. */
  readonly permission?: Tier;
  /** Which tools it may call. Default: all that tier and gates leave. */
  readonly tools?: ToolFilterOptions;
  /** Which declared methods it may call, as `Class.method` or `method`. Default: all that its tier covers. */
  readonly methods?: NameFilterOptions;
  /** Which classes it may use, of those that the policy shows. Default: all of them. */
  readonly classes?: NameFilterOptions;
  /** Per class name, plus `default`: added to every read. In code also a function of the agent. */
  readonly filters?: Readonly<Record<string, FilterEntry>>;
  /** Whose rows it reads of classes with a tenant. Default and null: of none, and such classes are refused. */
  readonly tenantId?: string | number | null;
  /** May create, change and delete rows directly, beside the environment gates. Default: not in client mode. */
  readonly allowMutations?: boolean;
  /** Acts as a client without the master key: tools that are not `clientSafe` are refused. Default false. */
  readonly clientMode?: boolean;
  /** May count facets, which no row filter can narrow. Null: the parent's, false for a root. */
  readonly masterAtlas?: boolean | null;
  /** Calls of a principal within `rateWindow`. Default 60. */
  readonly rateLimit?: number;
  /** Seconds. Default 60. */
  readonly rateWindow?: number;
  /** Replaces the limiter built from `rateLimit` and `rateWindow`. */
  readonly rateLimiter?: RateLimiter;
  /** What a principal may take of the data. Default: no limit. */
  readonly budget?: BudgetOptions | null;
  /** Levels of sub-agents below it. Default 4. */
  readonly recursionDepth?: number;
  /** Who or what is behind an assumed identity, for records; see `IdentityOptions`. */
  readonly impersonationLabel?: string | null;
  /** Unknown names in `tools` are faults instead of warnings. Default: the policy's switch. */
  readonly strictToolFilter?: boolean;
  /** The same for unknown names in `classes.only`. */
  readonly strictClassFilter?: boolean;
}

/** A named set of limits, compiled once and shared by all agents made from it. */
export interface AgentShape {
  readonly name: string;
  readonly permissions: Tier;
  readonly tools: NameFilter;
  readonly methods: NameFilter;
  /** Over canonical class names. */
  readonly classes: NameFilter;
  /** Its own; those of `outer` hold as well. */
  readonly filters: ClassFilters;
  readonly tenantId: string | number | null;
  readonly allowMutations: boolean;
  readonly clientMode: boolean;
  readonly masterAtlas: boolean;
  readonly rateLimiter: RateLimiter;
  /** What `rateLimiter` permits; null for one that was injected. */
  readonly rate: RateLimit | null;
  /** Where its limiters count, and those of its sub-agents. */
  readonly limiters: RateLimiters;
  /** Of a principal; sub-agents use that of the agent at their root. */
  readonly budget: DataBudget | null;
  readonly recursionDepth: number;
  readonly impersonationLabel: string | null;
  readonly strictToolFilter: boolean | null;
  readonly strictClassFilter: boolean | null;
  /** Of the agent that a sub-agent was made by: nothing here permits what that one does not. */
  readonly outer: AgentShape | null;
}

const LEAN_TOOLS = [
  'get_all_schemas',
  'get_schema',
  'query_class',
  'count_objects',
  'get_object',
  'aggregate',
];
const PROFILES: Readonly<Record<string, readonly string[]>> = { lean: LEAN_TOOLS };
/** The lists of tools that have a name. */
export const TOOL_PROFILES: readonly string[] = Object.keys(PROFILES);

/** An option that is not known would leave the agent without the limit that it was to be. */
const KNOWN_OPTIONS: Readonly<Record<keyof AgentShapeOptions, true>> = {
  permissions: true,
  permission: true,
  tools: true,
  methods: true,
  classes: true,
  filters: true,
  tenantId: true,
  allowMutations: true,
  clientMode: true,
  masterAtlas: true,
  rateLimit: true,
  rateWindow: true,
  rateLimiter: true,
  budget: true,
  recursionDepth: true,
  impersonationLabel: true,
  strictToolFilter: true,
  strictClassFilter: true,
};

function assertKnown(options: AgentShapeOptions): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(KNOWN_OPTIONS, name));
  if (unknown !== undefined)
    throw new TypeError(`${unknown}: unknown option; accepted: ${Object.keys(KNOWN_OPTIONS).join(', ')}`);
  if (options.permission !== undefined && options.permissions !== undefined)
    throw new TypeError('permission: is given beside permissions: one of them must go');
}

function parseToolFilter(value: unknown): NameFilter {
  const profile = (value as { profile?: unknown } | null | undefined)?.profile;
  if (profile === undefined || Array.isArray(value)) return parseNameFilter(value, 'tools');
  if (Object.keys(value as object).length > 1)
    throw new TypeError('tools: a profile cannot be combined with only or except');
  const names =
    typeof profile === 'string' && Object.hasOwn(PROFILES, profile) ? PROFILES[profile] : undefined;
  if (!names)
    throw new TypeError(`tools.profile: unknown profile; known: ${Object.keys(PROFILES).join(', ')}`);
  return new Filter(new Set(names), null);
}

function readRecursionDepth(value: number | undefined): number {
  if (value === undefined) return DEFAULT_RECURSION_DEPTH;
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new TypeError('recursionDepth: expected a whole number, zero or more');
}

function readRate({ rateLimiter, rateLimit, rateWindow }: AgentShapeOptions): RateLimit | null {
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
 * The same shape, whose limiter counts where `limiters` count; one that was injected stays. Done once, before agents are
 * made of it.
 */
export function countedBy(shape: AgentShape, limiters: RateLimiters): AgentShape {
  const { rate, name } = shape;
  return Object.freeze({
    ...shape,
    limiters,
    ...(rate && { rateLimiter: limiters.limiter(`agent ${name}`, rate) }),
  });
}

/**
 * @throws TypeError naming the option when a value has the wrong shape
 */
export function compileAgentShape(name: string, options: AgentShapeOptions = {}): AgentShape {
  assertKnown(options);
  const permissions = options.permission ?? options.permissions ?? 'readonly';
  if (!isTier(permissions)) {
    throw new TypeError('permissions: expected readonly, write or admin');
  }
  const clientMode = options.clientMode ?? false;
  const rate = readRate(options);
  const limiters = new ProcessRateLimiters();
  return Object.freeze({
    name,
    permissions,
    tools: parseToolFilter(options.tools),
    methods: parseNameFilter(options.methods, 'methods'),
    classes: parseNameFilter(options.classes, 'classes').mapNames(canonicalClassName),
    filters: parseClassFilters(options.filters),
    tenantId: options.tenantId ?? null,
    allowMutations: options.allowMutations ?? !clientMode,
    clientMode,
    masterAtlas: options.masterAtlas ?? false,
    rateLimiter: rate ? limiters.limiter(`agent ${name}`, rate) : (options.rateLimiter as RateLimiter),
    rate,
    limiters,
    budget: compileBudget(options.budget),
    recursionDepth: readRecursionDepth(options.recursionDepth),
    impersonationLabel: impersonationLabel(options.impersonationLabel),
    strictToolFilter: options.strictToolFilter ?? null,
    strictClassFilter: options.strictClassFilter ?? null,
    outer: null,
  });
}
