import { canonicalClassName } from './class-names.js';
import { type NameFilter, NameFilter as Filter, parseNameFilter } from './name-filter.js';
import { DEFAULT_RATE_LIMIT, ProcessRateLimiter, type RateLimiter } from './rate-limiter.js';
import { isTier, type Tier } from './tier.js';

/** Constraint objects per class name, plus `default`; Parse `where` form. */
export type ClassFilters = ReadonlyMap<string, Readonly<Record<string, unknown>>>;

/** The options of a named agent, as written in the configuration (docs/configuration.md#agents). */
export interface AgentShapeOptions {
  readonly permissions?: Tier;
  readonly tools?: unknown;
  readonly methods?: unknown;
  readonly classes?: unknown;
  readonly filters?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly tenantId?: string | number | null;
  readonly allowMutations?: boolean;
  readonly clientMode?: boolean;
  readonly rateLimit?: number;
  readonly rateWindow?: number;
  /** Replaces the limiter built from `rateLimit` and `rateWindow`. */
  readonly rateLimiter?: RateLimiter;
}

/** A named set of limits, compiled once and shared by all agents made from it. */
export interface AgentShape {
  readonly name: string;
  readonly permissions: Tier;
  readonly tools: NameFilter;
  readonly methods: NameFilter;
  /** Over canonical class names. */
  readonly classes: NameFilter;
  readonly filters: ClassFilters;
  readonly tenantId: string | number | null;
  readonly allowMutations: boolean;
  readonly clientMode: boolean;
  readonly rateLimiter: RateLimiter;
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

function parseFilters(value: AgentShapeOptions['filters']): ClassFilters {
  const filters = new Map<string, Readonly<Record<string, unknown>>>();
  for (const [className, constraint] of Object.entries(value ?? {})) {
    if (constraint === null || typeof constraint !== 'object' || Array.isArray(constraint)) {
      throw new TypeError(`filters.${className}: expected a constraint object`);
    }
    filters.set(canonicalClassName(className), constraint);
  }
  return filters;
}

/**
 * @throws TypeError naming the option when a value has the wrong shape
 */
export function compileAgentShape(name: string, options: AgentShapeOptions = {}): AgentShape {
  if (options.permissions !== undefined && !isTier(options.permissions)) {
    throw new TypeError('permissions: expected readonly, write or admin');
  }
  const clientMode = options.clientMode ?? false;
  return Object.freeze({
    name,
    permissions: options.permissions ?? 'readonly',
    tools: parseToolFilter(options.tools),
    methods: parseNameFilter(options.methods, 'methods'),
    classes: parseNameFilter(options.classes, 'classes').mapNames(canonicalClassName),
    filters: parseFilters(options.filters),
    tenantId: options.tenantId ?? null,
    allowMutations: options.allowMutations ?? !clientMode,
    clientMode,
    rateLimiter:
      options.rateLimiter ??
      new ProcessRateLimiter({
        limit: options.rateLimit ?? DEFAULT_RATE_LIMIT.limit,
        window: options.rateWindow ?? DEFAULT_RATE_LIMIT.window,
      }),
  });
}

/** The constraint that every read of a class carries for this agent: `default` overlaid by the class's own entry. */
export function filterFor(shape: AgentShape, className: string): Readonly<Record<string, unknown>> | null {
  const own = shape.filters.get(canonicalClassName(className));
  const fallback = shape.filters.get('default');
  return own || fallback ? { ...fallback, ...own } : null;
}
