import { canonicalClassName } from './class-names.js';
import type { Identity, Tier } from './identity.js';

/** Which names are permitted. A list is the same as `only`; `except` takes precedence. Null: all. */
export type NameFilterOptions<Name = string> =
  | readonly Name[]
  | { readonly only?: readonly Name[] | null; readonly except?: readonly Name[] | null }
  | null;

/**
 * An `only` / `except` filter over names. No filter permits everything; an empty `only` permits nothing.
 * `except` takes precedence over `only`.
 */
export class NameFilter {
  static readonly none = new NameFilter(null, null);

  constructor(
    readonly only: ReadonlySet<string> | null,
    readonly except: ReadonlySet<string> | null,
  ) {}

  permits(name: string): boolean {
    if (this.only && !this.only.has(name)) return false;
    return !this.except?.has(name);
  }

  /** The names that both permit, as one filter. */
  within(outer: NameFilter): NameFilter {
    const only =
      this.only && outer.only
        ? new Set([...this.only].filter((name) => outer.only?.has(name)))
        : (this.only ?? outer.only);
    const except = this.except || outer.except ? [...(this.except ?? []), ...(outer.except ?? [])] : null;
    return new NameFilter(only, except && new Set(except));
  }

  /** For something with several names: `only` must contain one of them, `except` none. */
  permitsAny(names: readonly string[]): boolean {
    if (this.only && !names.some((name) => this.only?.has(name))) return false;
    return !names.some((name) => this.except?.has(name));
  }

  get isActive(): boolean {
    return this.only !== null || this.except !== null;
  }

  /** The same filter over other spellings of its names. */
  mapNames(spelling: (name: string) => string): NameFilter {
    const mapNames = (names: ReadonlySet<string> | null) => names && new Set([...names].map(spelling));
    return new NameFilter(mapNames(this.only), mapNames(this.except));
  }
}

export function readNameFilter(options: NameFilterOptions | undefined): NameFilter {
  if (!options) return NameFilter.none;
  const { only, except = null } = isNameList(options) ? { only: options } : options;
  return new NameFilter(only ? new Set(only) : null, except && new Set(except));
}

/** `Array.isArray` knows no readonly lists. */
const isNameList = (options: object): options is readonly string[] => Array.isArray(options);

/** An entry without a dot names a method of any class. */
function spell(entry: string): string {
  const dot = entry.lastIndexOf('.');
  return dot < 0 ? entry : `${canonicalClassName(entry.slice(0, dot))}${entry.slice(dot)}`;
}

/** Whether the list contains every method that the entry means. */
function covers(list: ReadonlySet<string>, entry: string): boolean {
  return list.has(entry) || list.has(entry.slice(entry.lastIndexOf('.') + 1));
}

/** The methods that both filters permit: of a bare name and `Class.method` the narrower remains. */
export function narrowMethods(own: NameFilter, outer: NameFilter): NameFilter {
  const [a, b] = [own.mapNames(spell), outer.mapNames(spell)];
  const both = a.within(b);
  if (!a.only || !b.only) return both;
  const [left, right] = [a.only, b.only];
  const met = [
    ...[...left].filter((entry) => covers(right, entry)),
    ...[...right].filter((entry) => covers(left, entry)),
  ];
  return new NameFilter(new Set(met), both.except);
}

/** A constraint in Parse `where` form. */
export type FilterConstraint = Readonly<Record<string, unknown>>;

/** The properties of the agent that a filter function receives. */
export interface FilterSubject {
  readonly agentId: string;
  readonly principal: string;
  readonly identity: Identity;
  readonly permissions: Tier;
  readonly tenantId: string | number | null;
  /** Claims of the caller's access token, or passed by the application; `{}`: none. */
  readonly claims: Readonly<Record<string, unknown>>;
  readonly depth: number;
}

/** Runs on every call. `{}` limits nothing; a result that is not a constraint object, or an error, refuses the call. */
type FilterFunction = (agent: FilterSubject) => FilterConstraint | Promise<FilterConstraint>;

export type FilterEntry = FilterConstraint | FilterFunction;

/** Per canonical class name, plus `default`. */
export type ClassFilters = ReadonlyMap<string, FilterEntry>;

/** The key of the entry that applies to every class. */
export const DEFAULT_FILTER = 'default';

/** @throws TypeError naming an entry that is no constraint object or function, or the second one for a class */
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

/** The entries that apply to a class; for the same field the later one takes precedence. */
export function filterEntries(filters: ClassFilters, className: string): readonly FilterEntry[] {
  return [filters.get(DEFAULT_FILTER), filters.get(canonicalClassName(className))].filter(
    (entry) => entry !== undefined,
  );
}
