import { orThrow, type Refusal, refusals, Refused } from '#core';
import {
  mergeFilters,
  ALWAYS_KEEP,
  type ClassAccess,
  columnRefusal,
  fetchableColumns,
  isRequestable,
  isMasked,
  isRefusal,
  isFieldPath,
  joinProjection,
  mayShow,
  parseKeys,
  parseOrder,
  takeRoot,
  listShownColumns,
  type RequestedSortKey,
  type Where,
  withheldTarget,
} from '#policy';
import type { FindOptions } from '../governed-access.js';
import type { IncludePlan, ParseRow } from '../record-store.js';
import { type GovernedCall, createReach, tracePassed } from './governed-call.js';
import type { RowRules } from './row-rules.js';
import { fetchKeys, type RowGuard } from './shown-rows.js';

const MAX_ENTRIES = 20;

interface ResolvedIncludes {
  readonly plans: readonly IncludePlan[];
  /** The columns of the class that the store must return; absent: all. */
  readonly keys: readonly string[] | undefined;
  /** Applied to every returned row. */
  readonly guard: RowGuard;
  /** Caller's spelling of the pointer → large fields left out. Absent when nothing was auto-projected. */
  readonly truncated?: Readonly<Record<string, readonly string[]>>;
}

interface Included {
  readonly plan: IncludePlan;
  readonly guard: RowGuard;
}

function listGuards(included: readonly Included[]): ReadonlyMap<string, RowGuard> {
  return new Map(included.map(({ plan, guard }) => [plan.field, guard]));
}

interface Hop {
  readonly spelling: string;
  readonly target: ClassAccess;
  readonly children: Map<string, Hop>;
}

function readEntries(include: unknown): string[] {
  if (include === undefined || include === null) return [];
  if (!Array.isArray(include))
    throw new Refused(refusals.invalidArgument('include must be an array of field names'));
  if (include.length > MAX_ENTRIES)
    throw new Refused(refusals.invalidArgument(`include takes at most ${MAX_ENTRIES} entries`));
  for (const entry of include) {
    if (!isFieldPath(entry)) {
      throw new Refused(
        refusals.invalidArgument(
          'include entries must be field names; underscore-prefixed names are not permitted',
        ),
      );
    }
  }
  return include as string[];
}

/** The Pointers that dotted keys lead through: `customer.name` reads `customer`, as Parse Server does. */
function listCrossed(keys: readonly string[] = []): string[] {
  return [
    ...new Set(keys.filter((key) => key.includes('.')).map((key) => key.slice(0, key.lastIndexOf('.')))),
  ];
}

const isFetchable = (parent: ClassAccess, field: string): boolean =>
  !isMasked(parent, field) && (fetchableColumns(parent)?.has(field) ?? true);

/**
 * Resolves `include` against the policy: every hop passes the class gate and its parent's allowlist, carries its target's row
 * predicate, and returns only what the target's policy permits. Paths that lead to no other row have no effect, and the answer
 * names them.
 */
export class IncludeResolver {
  private readonly roots = new Map<string, Hop>();

  constructor(
    private readonly call: GovernedCall,
    private readonly rules: RowRules,
    /** Of the class that is read: the class of the pointers in a list, where rows alone tell it. */
    private readonly listClasses: ReadonlyMap<string, string> = new Map(),
  ) {}

  /** @param keys effective projection of the class in wire names; absent: everything */
  async resolve(
    include: unknown,
    access: ClassAccess,
    keys: readonly string[] | undefined,
  ): Promise<ResolvedIncludes> {
    const { roots } = this;
    for (const entry of readEntries(include)) this.addEntry(entry.split('.'), access, roots);
    for (const path of listCrossed(keys)) this.addKey(path.split('.'), access, roots);
    if (roots.size > MAX_ENTRIES)
      throw new Refused(refusals.invalidArgument(`keys lead through more than ${MAX_ENTRIES} Pointers`));
    const truncated: Record<string, readonly string[]> = {};
    const included = await this.planIncludes(roots, keys, truncated);
    const shown = keys && [...new Set(keys.map((key) => (roots.has(takeRoot(key)) ? takeRoot(key) : key)))];
    const guard = { access, keys: shown, includes: listGuards(included) };
    return {
      plans: included.map(({ plan }) => plan),
      keys: fetchKeys(guard),
      guard,
      ...(Object.keys(truncated).length > 0 && { truncated }),
    };
  }

  /** What `include` names and cannot include is refused or told. */
  private addEntry(segments: readonly string[], parent: ClassAccess, hops: Map<string, Hop>): void {
    const [spelling, ...rest] = segments;
    if (spelling === undefined) return;
    const field = parent.names.wireName(spelling);
    if (!isFetchable(parent, field)) orThrow(columnRefusal('include', spelling, field, parent));
    const hop = this.addHop(spelling, parent, hops);
    if (hop === null) this.call.note?.(describeNotIncluded(spelling, field, parent));
    else if (isRefusal(hop)) throw new Refused(hop);
    else this.addEntry(rest, hop.target, hop.children);
  }

  /** Keys are what may be read of what they name: the way of one ends where no row may be read. */
  private addKey(segments: readonly string[], parent: ClassAccess, hops: Map<string, Hop>): void {
    const [spelling, ...rest] = segments;
    if (spelling === undefined || !isFetchable(parent, parent.names.wireName(spelling))) return;
    const hop = this.addHop(spelling, parent, hops);
    if (hop !== null && !isRefusal(hop)) this.addKey(rest, hop.target, hop.children);
  }

  /** Null: the column leads to no other row. */
  private addHop(spelling: string, parent: ClassAccess, hops: Map<string, Hop>): Hop | Refusal | null {
    const field = parent.names.wireName(spelling);
    const isRoot = hops === this.roots;
    const targetClass = this.findTarget(parent, field) ?? (isRoot ? this.listClasses.get(field) : undefined);
    if (targetClass === undefined) return null;
    const withheld = withheldTarget(field, parent);
    if (withheld) return withheld.refusal;
    const target = createReach(this.call).reach(targetClass, 'include');
    if (isRefusal(target)) return target;
    tracePassed(this.call.trace, 'included class', target);
    const hop = hops.get(field) ?? { spelling, target, children: new Map<string, Hop>() };
    hops.set(field, hop);
    return hop;
  }

  /** The lists among the includes whose class no declaration tells, for the class that is read. */
  static listUndeclaredLists(include: unknown, access: ClassAccess, call: GovernedCall): readonly string[] {
    if (access.schema?.storage === 'plain') return [];
    const { properties } = call.scope.classPolicy(access.className);
    return readEntries(include)
      .map((entry) => access.names.wireName(takeRoot(entry)))
      .filter(
        (field) =>
          access.schema?.fields.get(field)?.type === 'Array' &&
          properties.get(field)?.targetClass === undefined &&
          isFetchable(access, field),
      );
  }

  /** The class of a pointer by its column; of an array of pointers only where the policy names the class of its members. */
  private findTarget(parent: ClassAccess, field: string): string | undefined {
    const column = parent.schema?.fields.get(field);
    if (column?.type === 'Pointer') return column.targetClass;
    if (column?.type !== 'Array') return undefined;
    return this.call.scope.classPolicy(parent.className).properties.get(field)?.targetClass;
  }

  private planIncludes(
    hops: ReadonlyMap<string, Hop>,
    keys: readonly string[] | undefined,
    truncated: Record<string, readonly string[]>,
  ): Promise<Included[]> {
    return Promise.all([...hops].map(([field, hop]) => this.include(field, hop, keys, truncated)));
  }

  private async include(
    field: string,
    hop: Hop,
    keys: readonly string[] | undefined,
    truncated: Record<string, readonly string[]>,
  ): Promise<Included> {
    const { target } = hop;
    const projected =
      this.listNamedKeys(field, target, keys) ??
      this.autoProjected(field, hop, keys, truncated)?.filter((key) => mayShow(target, takeRoot(key))) ??
      listShownColumns(target);
    const nested = projected ?? undefined;
    const shown = nested && [
      ...new Set([
        ...nested.map((key) => (hop.children.has(takeRoot(key)) ? takeRoot(key) : key)),
        ...ALWAYS_KEEP,
      ]),
    ];
    const children = await this.planIncludes(hop.children, nested, {});
    const guard = { access: target, keys: shown, includes: listGuards(children) };
    const fetched = fetchKeys(guard);
    const { where } = await this.rules.predicate(target.className, { canonical: false, operation: 'get' });
    return {
      plan: {
        field,
        targetClass: target.className,
        where,
        ...(fetched && { keys: fetched }),
        include: children.map(({ plan }) => plan),
      },
      guard,
    };
  }

  /** `pointer.field` entries among the keys, as far as the target's allowlist goes. */
  private listNamedKeys(
    field: string,
    target: ClassAccess,
    keys: readonly string[] | undefined,
  ): string[] | null {
    const prefix = `${field}.`;
    const named = keys
      ?.filter((key) => key.startsWith(prefix))
      .map((key) => target.names.wirePath(key.slice(prefix.length)));
    if (!named || named.length === 0) return null;
    return named.filter((key) => isRequestable(key, target));
  }

  private autoProjected(
    field: string,
    hop: Hop,
    keys: readonly string[] | undefined,
    truncated: Record<string, readonly string[]>,
  ): readonly string[] | null {
    if (!keys?.includes(field) || hop.children.size > 0) return null;
    const projection = joinProjection(this.call.scope.classPolicy(hop.target.className), hop.target.schema);
    if (!projection) return null;
    truncated[hop.spelling] = projection.dropped.filter((name) => mayShow(hop.target, name));
    return projection.fields;
  }
}

/** Why an entry of `include` has no effect. A column that the caller may not know is one that does not exist. */
function describeNotIncluded(
  written: string,
  field: string,
  { className, schema, readable }: ClassAccess,
): string {
  const name = `include '${written.slice(0, 128)}'`;
  const type = readable === null || readable.has(field) ? schema?.fields.get(field)?.type : undefined;
  if (type === undefined) return `${name}: class '${className}' has no such field`;
  if (type === 'Relation')
    return `${name}: a row holds no members of a relation; ask their class with {"$relatedTo":{"object":POINTER,"key":"${field}"}}`;
  if (type === 'Array') return `${name}: the entries are no Pointers, or not to one class that you may read`;
  if (type === 'Object')
    return `${name}: Pointers inside of an object are not followed; get them by their ids`;
  return `${name}: a ${type} refers to no other row`;
}

/** The class of all pointers in a column of rows; null where there are none, or several classes. */
export function findListClass(rows: readonly ParseRow[], field: string): string | null {
  const classes = new Set<string>();
  for (const row of rows)
    for (const entry of [row[field]].flat())
      if (isTyped(entry) && entry['__type'] === 'Pointer') classes.add(String(entry['className']));
  const [only] = classes;
  return classes.size === 1 && only !== undefined ? only : null;
}

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
  /** As requested, in wire names. */
  readonly request: Request;
  /** What the store is asked for. */
  readonly asked: Request;
}

export function readColumns(includes: ResolvedIncludes): ReadColumns {
  const request = { keys: includes.keys, include: includes.plans };
  return { ...includes, request, asked: widenRequest(request) };
}

/** Lists of keys that are remembered for a class, and characters of each. Callers choose them: a full map is emptied. */
const MAX_LISTS = 64;
const MAX_LIST = 1024;

/** Of a class as an agent definition may see it: it ends with its policy version and schema snapshot. */
const knownColumns = new WeakMap<ClassAccess, Map<string, ReadColumns>>();

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
  if (name !== null) remember(access, name, made);
  return made;
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

function remember(access: ClassAccess, name: string, columns: ReadColumns): void {
  let byKeys = knownColumns.get(access);
  if (!byKeys) knownColumns.set(access, (byKeys = new Map()));
  if (byKeys.size >= MAX_LISTS) byKeys.clear();
  byKeys.set(name, columns);
}

/** Reduces redacted rows to the requested paths, their included rows too. */
export function createNarrowing({ keys, include }: Request): (row: ParseRow) => ParseRow {
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

function isTyped(value: unknown): value is ParseRow {
  return isObject(value) && typeof value['__type'] === 'string';
}

const QUERY_LIMITS = { default: 100, max: 1000 } as const;

/** Only `false` disables the canonical filter; a value that is neither boolean nor absent is refused. */
export function readOptOut(applyCanonicalFilter: unknown): boolean {
  if ((applyCanonicalFilter ?? true) === true) return false;
  if (applyCanonicalFilter === false) return true;
  throw new Refused(refusals.invalidArgument('apply_canonical_filter must be true or false'));
}

/** Larger limits are reduced to the maximum; a value that is not a whole number in range is refused. */
export function readPage(options: Pick<FindOptions, 'limit' | 'skip' | 'ceiling'>): {
  limit: number;
  skip: number;
} {
  const { limit = QUERY_LIMITS.default, skip = 0, ceiling = QUERY_LIMITS.max } = options;
  if (!Number.isInteger(limit) || limit < 1)
    throw new Refused(refusals.invalidArgument('limit must be a whole number, at least 1'));
  if (!Number.isInteger(skip) || skip < 0)
    throw new Refused(refusals.invalidArgument('skip must be a whole number, at least 0'));
  return { limit: Math.min(limit, ceiling), skip };
}

const BY_ID: readonly RequestedSortKey[] = [{ field: 'objectId', descending: false }];

/**
 * The columns and order of a find. A class that is read in parts is ordered by id: that order is total and has an index, and
 * rows that are created or removed meanwhile move no other row to another part.
 */
export function readOrder(
  where: Where,
  { after, order, skip }: Pick<FindOptions, 'after' | 'order' | 'skip'>,
  access: ClassAccess,
): { readonly where: Where; readonly order: readonly RequestedSortKey[] } {
  if (after === undefined) return { where, order: parseOrder(order, access) };
  if (order !== undefined || skip !== undefined)
    throw new Refused(refusals.invalidArgument('rows behind an id come in the order of ids'));
  return { where: after === '' ? where : mergeFilters(where, { objectId: { $gt: after } }), order: BY_ID };
}
