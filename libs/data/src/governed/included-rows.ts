import { cutText, orThrow, type Refusal, Refused, refuse } from '#core';
import {
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
  noteColumn,
  noteKey,
  takeRoot,
  listShownColumns,
  withheldTarget,
} from '#policy';
import type { IncludePlan, ParseRow } from '../record-store.js';
import { type GovernedCall, createReach, tracePassed } from './governed-call.js';
import { fetchKeys, type RowGuard } from './shown-rows.js';
import type { RowRules } from './row-rules.js';

const MAX_ENTRIES = 20;

export interface ResolvedIncludes {
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
    throw refuse.invalidArgument('include must be an array of field names, such as ["author"]');
  if (include.length > MAX_ENTRIES)
    throw refuse.invalidArgument(`include takes at most ${MAX_ENTRIES} entries`);
  for (const entry of include) {
    if (!isFieldPath(entry)) {
      throw refuse.invalidArgument(
        'include entries must be field names; underscore-prefixed names are not permitted',
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
      throw refuse.invalidArgument(`keys lead through more than ${MAX_ENTRIES} Pointers`);
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

  /** An entry of `include` that cannot be included is refused, or named in the note of the answer. */
  private addEntry(segments: readonly string[], parent: ClassAccess, hops: Map<string, Hop>): void {
    const [spelling, ...rest] = segments;
    if (spelling === undefined) return;
    const field = parent.names.wireName(spelling);
    if (!isFetchable(parent, field)) orThrow(columnRefusal('include', spelling, field, parent));
    const hop = this.addHop(spelling, parent, hops);
    if (hop === null) {
      this.call.note?.(describeNotIncluded(spelling, field, parent));
      return;
    }
    if (isRefusal(hop)) throw new Refused(hop);
    noteColumn(field, parent, this.call.note);
    this.addEntry(rest, hop.target, hop.children);
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
    const named = keys?.filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
    if (!named || named.length === 0) return null;
    for (const key of named) noteKey(key, target, this.call.note);
    return named.map((key) => target.names.wirePath(key)).filter((key) => isRequestable(key, target));
  }

  private autoProjected(
    field: string,
    hop: Hop,
    keys: readonly string[] | undefined,
    truncated: Record<string, readonly string[]>,
  ): readonly string[] | null {
    if (!keys?.includes(field) || hop.children.size > 0) return null;
    const { scope } = this.call;
    const { className } = hop.target;
    const projection = joinProjection(scope.classPolicy(className), scope.schemas.get(className));
    if (!projection) return null;
    const dropped = projection.dropped.filter((name) => mayShow(hop.target, name));
    if (dropped.length > 0) truncated[hop.spelling] = dropped;
    return projection.fields;
  }
}

/** Why an entry of `include` has no effect. A column that the caller may not know is one that does not exist. */
function describeNotIncluded(
  written: string,
  field: string,
  { className, schema, readable }: ClassAccess,
): string {
  const name = `include '${cutText(written, 128)}'`;
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

export function isTyped(value: unknown): value is ParseRow {
  return typeof value === 'object' && value !== null && '__type' in value && typeof value.__type === 'string';
}
