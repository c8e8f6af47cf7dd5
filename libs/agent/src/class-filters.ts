import { canonicalClassName } from './class-names.js';
import type { Identity } from './identity.js';
import type { Tier } from './tier.js';

/** A constraint in Parse `where` form. */
export type FilterConstraint = Readonly<Record<string, unknown>>;

/** What a filter given as a function is told of the agent it limits. */
export interface FilterSubject {
  readonly agentId: string;
  readonly principal: string;
  readonly identity: Identity;
  readonly permissions: Tier;
  readonly tenantId: string | number | null;
  /** Of the access token that admitted the caller, or chosen by the application; `{}`: none. */
  readonly claims: Readonly<Record<string, unknown>>;
  readonly depth: number;
}

/**
 * Asked on every call. `{}` limits nothing; whatever is not a constraint object, and whatever it throws, refuses the
 * call.
 */
export type FilterFunction = (agent: FilterSubject) => FilterConstraint | Promise<FilterConstraint>;

export type FilterEntry = FilterConstraint | FilterFunction;

/** Per canonical class name, plus `default`. */
export type ClassFilters = ReadonlyMap<string, FilterEntry>;

/** The key of the entry that holds for every class. */
export const DEFAULT_FILTER = 'default';

/** @throws TypeError naming the entry that is neither a constraint object nor a function, or filters a class twice */
export function parseClassFilters(value: Readonly<Record<string, FilterEntry>> | undefined): ClassFilters {
  const filters = new Map<string, FilterEntry>();
  if (value !== undefined && !isConstraint(value))
    throw new TypeError('filters: expected an object of a constraint per class');
  for (const [className, entry] of Object.entries(value ?? {})) {
    const usable = typeof entry === 'function' || isConstraint(entry);
    if (!usable) throw new TypeError(`filters.${className}: expected a constraint object`);
    const name = canonicalClassName(className);
    if (filters.has(name)) throw new TypeError(`filters.${className}: filters the same class as '${name}'`);
    filters.set(name, entry);
  }
  return filters;
}

export function isConstraint(value: unknown): value is FilterConstraint {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The entries that hold for a class, in the order in which the later one wins a field. */
export function filterEntries(filters: ClassFilters, className: string): readonly FilterEntry[] {
  return [filters.get(DEFAULT_FILTER), filters.get(canonicalClassName(className))].filter(
    (entry) => entry !== undefined,
  );
}
