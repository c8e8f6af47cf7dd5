import { cutText, orThrow, type Refusal, Refused, refusals, refuse } from '#core';
import type { ClassSchema } from './class-schema.js';
import { type ColumnMasks, isSecretColumn } from '../masking/column-masks.js';
import type { ProtectedColumns } from '../rights/class-permissions.js';
import { type FieldNames, hasInternalSegment, logicalColumn, MAGIC_NAMES, takeRoot } from './field-names.js';
import { blockFilter, isPlainObject } from './where.js';

/**
 * The classes withheld from an agent in a form for database queries: those of the list, or all but those of the list. Matches
 * what `isWithheld` returns.
 */
export interface WithheldNames {
  readonly kind: 'listed' | 'allBut';
  /** In every spelling: `_User` and `User` are one class. */
  readonly classes: readonly string[];
  /** Those that a text can name: withheld classes of the schema or the policy. `US$5` names none. */
  readonly inTexts: readonly string[];
}

/** What one agent may see of one class: the result of the class gate when it does not refuse. */
export interface ClassAccess {
  readonly className: string;
  /** Name of the database that the policy declares for the class, also while that is away. Default null: that of the service. */
  readonly database?: string | null;
  readonly schema: ClassSchema | undefined;
  readonly names: FieldNames;
  /** Wire names that may be queried and returned, `ALWAYS_KEEP` included; `null`: all. */
  readonly readable: ReadonlySet<string> | null;
  /** Columns that only documents have, by names that are not plain: no refusal repeats them. */
  readonly unnamed?: ReadonlySet<string>;
  /** Set when class-level permissions hide columns from this caller; they are not in `readable`. */
  readonly guarded?: GuardedColumns;
  /** Set when columns are masked for this caller; they are not in `readable`, and reads return their masked forms. */
  readonly masks?: ColumnMasks;
  /** Columns that point to a class withheld from the agent, by wire name: their values may not be used. */
  readonly withheld?: ReadonlyMap<string, WithheldTarget>;
  /** Of a Parse class: lists of pointers, by wire name, and the class that the policy declares for each. */
  readonly lists?: ReadonlyMap<string, string>;
  /** Set when classes are withheld from the agent and other columns may hold objects of them that the schema does not declare. */
  readonly mayHold?: WithheldObjects;
  /** Set with withheld classes: columns that are declared to hold neither objects nor lists, and are not trusted to. */
  readonly flat?: ReadonlySet<string>;
}

export interface WithheldObjects {
  /** Columns whose values are objects or lists, by wire name. */
  readonly columns: ReadonlySet<string>;
  readonly names: WithheldNames;
}

/** Hidden columns, and what a find may fetch to decide about them per row. */
interface GuardedColumns extends ProtectedColumns {
  /** `null`: everything. The same as `readable` when no row has an exception. */
  readonly fetchable: ReadonlySet<string> | null;
}

/** System classes that a join may reach, whatever the policy. */
export const JOINABLE_SYSTEM_CLASSES: ReadonlySet<string> = new Set([
  '_User',
  '_Role',
  '_Installation',
  '_Session',
]);

/**
 * How another class is reached. Class-level permissions must allow `get` for single rows (`include`, `owner` of a relation) and
 * `find` for searches; they are not checked for a `pointer` that is only compared.
 */
export type ReachSite = 'include' | 'pipeline' | 'constraint' | 'owner' | 'pointer';

/** The class gate for classes reached through a pointer, a join or a cross-class operator. */
export interface ClassReach {
  reach(className: string, site: ReachSite): ClassAccess | Refusal;
}

/** One query reads one database. @throws Refused `invalid_query`, kind `cross_database` */
export function assertOneDatabase(
  from: Pick<ClassAccess, 'className' | 'database'>,
  to: Pick<ClassAccess, 'className' | 'database'>,
): void {
  if ((from.database ?? null) !== (to.database ?? null))
    throw refuse.crossDatabase(from.className, to.className);
}

export function isRefusal<T extends object>(answer: T | Refusal | null): answer is Refusal {
  return answer !== null && 'gate' in answer;
}

/** A column that the agent may not know is refused like one that does not exist. */
const isSecret = (root: string, { masks }: ClassAccess): boolean =>
  masks !== undefined && isSecretColumn(masks, root);

/** Whether a caller may name a column. */
export function mayNameColumn(root: string, access: ClassAccess): boolean {
  if (!isSecret(root, access) && (access.guarded?.hidden.has(root) || isMasked(access, root))) return false;
  return access.readable === null || access.readable.has(root);
}

/** The readable columns that a refusal may name. */
export const listNameable = ({ readable, unnamed }: Pick<ClassAccess, 'readable' | 'unnamed'>): string[] =>
  [...(readable ?? [])].filter((name) => unnamed?.has(name) !== true);

/** Why a column may not be named; null when it may. */
export function columnRefusal(
  context: string,
  written: string,
  root: string,
  access: ClassAccess,
  alsoAllowed: Iterable<string> = [],
): Refusal | null {
  if (mayNameColumn(root, access)) return null;
  const secret = isSecret(root, access);
  const readable = listNameable(access);
  if (!secret && access.guarded?.hidden.has(root)) return refusals.protectedFieldRef(context, written, root);
  if (!secret && isMasked(access, root))
    return refusals.maskedField(context, written, root, [...readable, ...alsoAllowed]);
  // Looked for as long as a column that does not exist.
  access.names.noteMissing(written);
  // The name as written: its column may be one that the agent may not know.
  return refusals.fieldDenied(context, written, takeRoot(written), [...readable, ...alsoAllowed]);
}

/** The columns that a find may fetch; protected ones that only some rows show are removed from the others later. */
export function fetchableColumns(access: ClassAccess): ReadonlySet<string> | null {
  if (access.masks) return access.masks.fetchable;
  return access.guarded ? access.guarded.fetchable : access.readable;
}

/** Whether a find may return the column, also in masked form. */
export function mayShow(access: ClassAccess, root: string): boolean {
  return (fetchableColumns(access)?.has(root) ?? true) || (access.masks?.shown.has(root) ?? false);
}

/** The columns that a find returns by default; null: everything. */
export function listShownColumns(access: ClassAccess): readonly string[] | null {
  const fetchable = fetchableColumns(access);
  return fetchable && [...new Set([...fetchable, ...(access.masks?.shown ?? [])])];
}

/** Whether the column is masked for the caller, wholly or in part: its values may not be compared. */
export function isMasked({ masks }: ClassAccess, root: string): boolean {
  return masks?.columns.has(logicalColumn(root)) ?? false;
}

/** A class behind a column that is withheld from the agent, and the refusal for it. */
export interface WithheldTarget {
  readonly className: string;
  readonly refusal: Refusal;
}

/** The withheld class behind the root of a wire path, named by field or by storage column. */
export function withheldTarget(path: string, access: ClassAccess): WithheldTarget | undefined {
  return access.withheld?.get(logicalColumn(takeRoot(path)));
}

/** A segment with a special meaning in the database or in JavaScript. */
function isOddSegment(segment: string): boolean {
  return segment === '' || MAGIC_NAMES.has(segment) || segment.includes('$') || segment.includes('\0');
}

/**
 * Every segment must be a possible field name and not an internal one.
 * @throws Refused `invalid_query`, `security_blocked` (denied_internal_field)
 */
export function assertFieldPath(path: string): void {
  if (path.includes('.') ? path.split('.').some(isOddSegment) : isOddSegment(path)) {
    throw refuse.invalidQuery(`'${cutText(path, 128)}' is not a field name`);
  }
  assertNotInternal(path);
}

function assertNotInternal(path: string): void {
  if (hasInternalSegment(path)) {
    throw blockFilter('where', 'denied_internal_field', cutText(path, 128));
  }
}

/** The root of a wire path must be readable. @throws Refused `access_denied` */
export function assertReadable(
  context: string,
  written: string,
  wirePath: string,
  access: ClassAccess,
): void {
  orThrow(columnRefusal(context, written, takeRoot(wirePath), access));
}

/** The checked wire path of any spelling. `checkFields: false` skips the allowlist, never the internal fields. */
export function resolveFieldPath(
  path: string,
  access: ClassAccess,
  context: string,
  checkFields = true,
): string {
  assertFieldPath(path);
  const wire = access.names.wirePath(path);
  assertNotInternal(wire);
  if (checkFields) assertReadable(context, path, wire, access);
  return wire;
}

/**
 * A condition on a column that points to a withheld class may only test for presence: a pattern or a range would reveal ids.
 * @param judgeClass the class gate, which has exceptions
 */
export function assertNotWithheld(
  path: string,
  condition: unknown,
  access: ClassAccess,
  judgeClass: (className: string) => Refusal | null,
): void {
  const target = withheldTarget(path, access);
  if (target === undefined || testsPresence(condition)) return;
  if (judgeClass(target.className)) throw new Refused(target.refusal);
}

/**
 * A text index may cover any column: also ids of withheld classes and texts of their objects.
 * @throws Refused
 */
export function assertNoTextOfOthers({ withheld, mayHold }: ClassAccess): void {
  if (!mayHold && (withheld?.size ?? 0) === 0) return;
  throw refuse.invalidQuery(
    "'$text' searches columns that may hold objects of classes that are not yours: search one column by $regex instead",
  );
}

function testsPresence(condition: unknown): boolean {
  if (condition === null) return true;
  return (
    isPlainObject(condition) &&
    Object.entries(condition).every(
      ([operator, operand]) =>
        operator === '$exists' || (operand === null && (operator === '$eq' || operator === '$ne')),
    )
  );
}
