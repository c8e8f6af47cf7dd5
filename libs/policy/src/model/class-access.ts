import { type Refusal, refusals } from '#agent';
import type { ClassSchema } from './class-schema.js';
import { columnOf, type ColumnMasks, isSecretColumn } from '../masking/column-masks.js';
import type { ProtectedColumns } from '../rights/class-permissions.js';
import type { WithheldNames } from '../masking/redact.js';
import { type FieldNames, rootOf } from './field-names.js';

/** One class as one agent may see it: the answer of the class gate when it did not refuse. */
export interface ClassAccess {
  readonly className: string;
  readonly schema: ClassSchema | undefined;
  readonly names: FieldNames;
  /** Wire names that may be named and shown, the always-kept three included; `null` when nothing limits them. */
  readonly readable: ReadonlySet<string> | null;
  /** Set when class-level permissions hide columns from this caller; they are not in `readable`. */
  readonly guarded?: GuardedColumns;
  /** Set when columns are masked for this caller; they are not in `readable`, and reads answer with their masked forms. */
  readonly masks?: ColumnMasks;
  /** Columns that lead into a class withheld from the agent, by wire name: their values are not the caller's to use. */
  readonly withheld?: ReadonlyMap<string, WithheldTarget>;
  /** Set when classes are withheld from the agent that other columns may hold objects of, unknown to the schema. */
  readonly mayHold?: WithheldObjects;
}

export interface WithheldObjects {
  /** Objects and lists, by wire name. */
  readonly columns: ReadonlySet<string>;
  readonly names: WithheldNames;
}

/** Hidden columns, and what a find may fetch to decide about them row by row. */
export interface GuardedColumns extends ProtectedColumns {
  /** `null`: everything. The same as `readable` when no row is an exception. */
  readonly fetchable: ReadonlySet<string> | null;
}

/**
 * Why another class is reached. Class-level permissions are asked for `get` where single rows are followed (`include`,
 * `owner` of a relation), for `find` where rows are searched, and for nothing where a `pointer` is only compared.
 */
export type ReachSite = 'include' | 'pipeline' | 'constraint' | 'owner' | 'pointer';

/** Asks the one class gate about a class reached through a pointer, a join or a cross-class operator. */
export interface ClassReach {
  reach(className: string, site: ReachSite): ClassAccess | Refusal;
}

export function isRefusal(answer: ClassAccess | Refusal): answer is Refusal {
  return 'gate' in answer;
}

/** Why a column may not be named, in the words of what forbids it; null when it may. */
export function columnRefusal(
  context: string,
  written: string,
  root: string,
  access: ClassAccess,
  alsoAllowed: Iterable<string> = [],
): Refusal | null {
  // A column that the agent may not know of is refused as one that does not exist.
  const secret = access.masks !== undefined && isSecretColumn(access.masks, root);
  if (!secret && access.guarded?.hidden.has(root)) return refusals.protectedFieldRef(context, written, root);
  if (!secret && isMasked(access, root))
    return refusals.maskedField(context, written, root, [...(access.readable ?? []), ...alsoAllowed]);
  if (access.readable === null || access.readable.has(root)) return null;
  // As it was written: which column it means would tell of one that the agent may not know.
  return refusals.fieldDenied(context, written, rootOf(written), [...access.readable, ...alsoAllowed]);
}

/** What a find may ask the store for; protected columns that some rows show are taken off the others afterwards. */
export function fetchableColumns(access: ClassAccess): ReadonlySet<string> | null {
  if (access.masks) return access.masks.fetchable;
  return access.guarded ? access.guarded.fetchable : access.readable;
}

/** Whether a find may answer with the column, be it in masked form. */
export function mayShow(access: ClassAccess, root: string): boolean {
  return (fetchableColumns(access)?.has(root) ?? true) || (access.masks?.shown.has(root) ?? false);
}

/** What a find answers with when nothing is named; null: everything. */
export function shownColumns(access: ClassAccess): readonly string[] | null {
  const fetchable = fetchableColumns(access);
  return fetchable && [...new Set([...fetchable, ...(access.masks?.shown ?? [])])];
}

/** Whether the column is masked for the caller, wholly or in part: its values are not there to be compared. */
export function isMasked({ masks }: ClassAccess, root: string): boolean {
  return masks?.columns.has(columnOf(root)) ?? false;
}

/** A class that a column leads into and the agent may not know, with what is said of it. */
export interface WithheldTarget {
  readonly className: string;
  readonly refusal: Refusal;
}

/** The withheld class behind the root of a wire path, whether it is named by field or by storage column. */
export function withheldTarget(path: string, access: ClassAccess): WithheldTarget | undefined {
  return access.withheld?.get(columnOf(rootOf(path)));
}
