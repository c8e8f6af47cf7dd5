import { refuse } from '#core';
import {
  mergeFilters,
  type ClassAccess,
  parseKeys,
  parseOrder,
  takeRoot,
  type RequestedSortKey,
  type Where,
} from '#policy';
import type { FindOptions } from '../governed-access.js';
import type { IncludePlan, ParseRow } from '../record-store.js';
import { isTyped, type ResolvedIncludes } from './included-rows.js';
import { fetchKeys, type RowGuard } from './shown-rows.js';

/** The parts of a row that the caller requested. */
interface Request {
  readonly keys?: readonly string[] | undefined;
  readonly include: readonly IncludePlan[];
}

/**
 * The same request with whole columns: redaction recognises a withheld object by its class name, which a path to one of its
 * members would omit.
 */
function widenRequest({ keys, include }: Request): Request {
  return {
    ...(keys && { keys: [...new Set(keys.map(takeRoot))] }),
    include: include.map((plan) => ({ ...plan, ...widenRequest(plan) })),
  };
}

/** The columns of a read: what the store is asked for, and what is removed of its rows again. */
export interface ReadColumns extends ResolvedIncludes {
  /** What the store is asked for. */
  readonly asked: Request;
  /** Reduces a redacted row to what was requested. */
  readonly narrow: (row: ParseRow) => ParseRow;
}

export function readColumns(includes: ResolvedIncludes): ReadColumns {
  const request = { keys: includes.keys, include: includes.plans };
  return { ...includes, asked: widenRequest(request), narrow: createNarrowing(request) };
}

/** Lists of names that are remembered for a class, and characters of each. Callers choose them: a full map is emptied. */
const MAX_LISTS = 64;
const MAX_LIST = 1024;

/** What lists of names mean in a class as an agent definition may see it: it ends with its policy version and schema snapshot. */
type Known<Plan> = WeakMap<ClassAccess, Map<string, Plan>>;

const knownColumns: Known<ReadColumns> = new WeakMap();
const knownOrders: Known<readonly RequestedSortKey[]> = new WeakMap();

/** Whether a read may show rows of other classes: where not, its columns are remembered. */
export function mayInclude({
  keys,
  include,
}: {
  readonly keys?: unknown;
  readonly include?: unknown;
}): boolean {
  if (include !== undefined && include !== null) return true;
  return Array.isArray(keys) && keys.some((key) => typeof key === 'string' && key.includes('.'));
}

/**
 * The columns of a read without included rows, worked out once for each list of keys.
 * @throws Refused as `parseKeys`
 */
export function plainColumns(keys: unknown, access: ClassAccess): ReadColumns {
  const name = nameOfKeys(keys);
  const known = name === null ? undefined : knownColumns.get(access)?.get(name);
  if (known) return known;
  const parsed = parseKeys(keys, access);
  const shown = parsed && [...new Set(parsed)];
  const guard = { access, keys: shown, includes: NOTHING_INCLUDED };
  const made = readColumns({ plans: [], keys: fetchKeys(guard), guard });
  return name === null ? made : remember(knownColumns, access, name, made);
}

const NOTHING_INCLUDED: ReadonlyMap<string, RowGuard> = new Map();

/** Null: too long to be remembered, or none that is accepted. */
function nameOfKeys(keys: unknown): string | null {
  if (keys === undefined || keys === null) return '';
  // Each key needs quotes and a comma.
  if (!Array.isArray(keys) || keys.length * 3 > MAX_LIST) return null;
  if (!keys.every((key) => typeof key === 'string' && key.length <= MAX_LIST)) return null;
  const name = JSON.stringify(keys);
  return name.length <= MAX_LIST ? name : null;
}

function remember<Plan>(known: Known<Plan>, access: ClassAccess, name: string, plan: Plan): Plan {
  Object.freeze(plan);
  if (name.length > MAX_LIST) return plan;
  let byName = known.get(access);
  if (!byName) known.set(access, (byName = new Map()));
  if (byName.size >= MAX_LISTS) byName.clear();
  byName.set(name, plan);
  return plan;
}

/** Reduces redacted rows to the requested paths, their included rows too. */
function createNarrowing({ keys, include }: Request): (row: ParseRow) => ParseRow {
  const plans = new Map(include.map((plan) => [plan.field, createNarrowing(plan)]));
  const paths = pathsByRoot(keys ?? []);
  if (plans.size === 0 && paths.size === 0) return (row) => row;
  return (row) =>
    Object.fromEntries(
      Object.entries(row).flatMap(([field, value]) => {
        const narrow = plans.get(field);
        if (narrow) return [[field, narrowIncluded(value, narrow)]];
        const within = paths.get(field);
        if (!within || isTyped(value)) return [[field, value]];
        return isObject(value) ? [[field, pickPaths(value, within)]] : [];
      }),
    );
}

function narrowIncluded(value: unknown, narrow: (row: ParseRow) => ParseRow): unknown {
  if (Array.isArray(value)) return value.map((element) => narrowIncluded(element, narrow));
  return isTyped(value) && value['__type'] === 'Object' ? narrow(value) : value;
}

/** Root → paths below it, for roots that are not requested whole. */
function pathsByRoot(keys: readonly string[]): Map<string, string[]> {
  const paths = new Map<string, string[]>();
  for (const key of keys) {
    const root = takeRoot(key);
    if (root === key) continue;
    paths.set(root, [...(paths.get(root) ?? []), key.slice(root.length + 1)]);
  }
  for (const key of keys) paths.delete(key);
  return paths;
}

/** Projects as the database does: members that are not objects have nothing below them; a placeholder stays whole. */
function pickPaths(value: object, paths: readonly string[]): unknown {
  if (Array.isArray(value)) return value.filter(isObject).map((element) => pickPaths(element, paths));
  if ('__redacted' in value) return value;
  const below = pathsByRoot(paths);
  const whole = new Set(paths.filter((path) => !path.includes('.')));
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]): [string, unknown][] => {
      if (whole.has(key)) return [[key, member]];
      const within = below.get(key);
      return within && isObject(member) ? [[key, pickPaths(member, within)]] : [];
    }),
  );
}

function isObject(value: unknown): value is ParseRow {
  return typeof value === 'object' && value !== null;
}

const QUERY_LIMITS = { default: 100, max: 1000 } as const;

/** Only `false` disables the canonical filter; a value that is neither boolean nor absent is refused. */
export function readOptOut(applyCanonicalFilter: unknown): boolean {
  if ((applyCanonicalFilter ?? true) === true) return false;
  if (applyCanonicalFilter === false) return true;
  throw refuse.invalidArgument('apply_canonical_filter must be true or false');
}

/** Larger limits are reduced to the maximum; a value that is not a whole number in range is refused. */
export function readPage(options: Pick<FindOptions, 'limit' | 'skip' | 'ceiling'>): {
  limit: number;
  skip: number;
} {
  const { limit = QUERY_LIMITS.default, skip = 0, ceiling = QUERY_LIMITS.max } = options;
  if (!Number.isInteger(limit) || limit < 1)
    throw refuse.invalidArgument('limit must be a whole number, at least 1');
  if (!Number.isInteger(skip) || skip < 0)
    throw refuse.invalidArgument('skip must be a whole number, at least 0');
  return { limit: Math.min(limit, ceiling), skip };
}

const BY_ID: readonly RequestedSortKey[] = [{ field: 'objectId', descending: false }];

/**
 * The columns and order of a find. A class that is read in parts is ordered by id: that order is total and has an index, and
 * rows that are created or removed meanwhile move no other row to another part.
 */
export function readOrder(
  where: Where,
  { after, order }: Pick<FindOptions, 'after' | 'order'>,
  access: ClassAccess,
): { readonly where: Where; readonly order: readonly RequestedSortKey[] } {
  if (after === undefined) {
    if (typeof order !== 'string') return { where, order: parseOrder(order, access) };
    const known = knownOrders.get(access)?.get(order);
    return { where, order: known ?? remember(knownOrders, access, order, parseOrder(order, access)) };
  }
  if (order !== undefined) throw refuse.invalidArgument('rows behind an id come in the order of ids');
  return { where: after === '' ? where : mergeFilters(where, { objectId: { $gt: after } }), order: BY_ID };
}
