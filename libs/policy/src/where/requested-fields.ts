import { cutText, orThrow, Refused, refuse } from '#core';
import { isDeniedPath } from '../masking/column-masks.js';
import { mayHoldWithheld } from '../masking/withheld-objects.js';
import {
  assertReadable,
  type ClassAccess,
  columnRefusal,
  mayShow,
  resolveFieldPath,
  listShownColumns,
  withheldTarget,
} from '../model/class-access.js';
import type { ClassSchema, FieldType } from '../model/class-schema.js';
import {
  ALWAYS_KEEP,
  hasInternalSegment,
  isFieldPath,
  isInternalField,
  takeRoot,
} from '../model/field-names.js';
import type { ClassPolicy } from '../model/policy.js';
import { type Note, noteColumn } from '../model/value-type.js';

/** Names that a read takes as its keys. */
export const MAX_KEYS = 64;

/**
 * The projection in wire names; `undefined` when a class without allowlist is read as a whole. Never empty: if no key may be
 * read, `ALWAYS_KEEP` remains.
 * @throws Refused `invalid_argument`, `access_denied` for a field whose mask is `deny`
 */
export function parseKeys(keys: unknown, access: ClassAccess): readonly string[] | undefined {
  const asked = readRequestedKeys(keys);
  if (asked.length === 0) {
    const shown = listShownColumns(access);
    return shown === null ? undefined : readableFields(shown);
  }
  const wire = asked
    .map((key) => access.names.wirePath(key))
    .filter((path) => !hasInternalSegment(path) && isRequestable(path, access));
  return [...new Set([...wire, ...ALWAYS_KEEP])];
}

/** An allowlist as a projection, without internal columns that a declaration may contain by mistake. */
export function readableFields(readable: Iterable<string>): string[] {
  return [...new Set([...readable, ...ALWAYS_KEEP])].filter((name) => !hasInternalSegment(name));
}

/**
 * Whether a projection may contain the wire path. Paths that may not be read are ignored.
 * @throws Refused `access_denied` for a field whose mask is `deny`
 */
export function isRequestable(path: string, access: ClassAccess): boolean {
  if (access.masks && isDeniedPath(access.masks, path))
    orThrow(columnRefusal('keys', path, takeRoot(path), access));
  return mayShow(access, takeRoot(path));
}

/** Notes that a key names nothing that the caller may read. Says the same of a hidden column and of one that does not exist. */
export function noteKey(key: string, access: ClassAccess, note: Note | undefined): void {
  const path = access.names.wirePath(key);
  if (mayShow(access, takeRoot(path))) return noteColumn(path, access, note);
  note?.(
    `class '${access.className}' has no field '${cutText(key, 128)}' that you may read: get_schema lists them`,
  );
}

function readRequestedKeys(keys: unknown): string[] {
  if (keys === undefined || keys === null) return [];
  if (!Array.isArray(keys)) throw refuse.invalidArgument('keys is an array of field names, such as ["name"]');
  if (keys.length > MAX_KEYS) throw refuse.invalidArgument(`keys holds at most ${MAX_KEYS} names`);
  return keys.map((key: unknown) => {
    if (isFieldPath(key)) return key;
    throw refuse.invalidArgument(
      'keys entries are field names, with dots between the names of a path; underscore-prefixed names are not permitted',
    );
  });
}

/** The fields of a class that are returned for an included pointer. */
export interface JoinProjection {
  readonly source: 'join_fields' | 'allowlist_minus_large' | 'field_map_minus_large';
  /** Without `ALWAYS_KEEP`. */
  readonly fields: readonly string[];
  /** The others that it would have without a projection. */
  readonly dropped: readonly string[];
}

/** The first non-empty of: join fields; allowlist − large fields; all fields − large fields. Null: no projection. */
export function joinProjection(policy: ClassPolicy, schema: ClassSchema | undefined): JoinProjection | null {
  const large = new Set(policy.largeFields);
  const projection = (source: JoinProjection['source'], fields: readonly string[]): JoinProjection => {
    const kept = fields.filter((name) => !isInternalField(name));
    const all = new Set([...policy.largeFields, ...(policy.fields ?? schema?.fields.keys() ?? [])]);
    for (const name of [...kept, ...ALWAYS_KEEP, 'ACL']) all.delete(name);
    return { source, fields: kept, dropped: [...all].filter((name) => !isInternalField(name)) };
  };
  if (policy.joinFields && policy.joinFields.length > 0) return projection('join_fields', policy.joinFields);
  const readable = policy.fields?.filter((name) => !large.has(name));
  if (readable && readable.length > 0) return projection('allowlist_minus_large', readable);
  if (large.size === 0 || !schema) return null;
  const own = [...schema.fields.keys()].filter(
    (name) => !large.has(name) && name !== 'ACL' && !(ALWAYS_KEEP as readonly string[]).includes(name),
  );
  return projection('field_map_minus_large', own);
}

export interface RequestedSortKey {
  /** Wire name, may be dotted. */
  readonly field: string;
  readonly descending: boolean;
}

/** The limit of the database. */
const MAX_SORT_KEYS = 32;

/**
 * Parses `"-createdAt,title"` into sort keys; none for an empty order. The first mention of a field counts.
 * @throws Refused `invalid_argument`, `access_denied`
 */
export function parseOrder(order: unknown, access: ClassAccess): readonly RequestedSortKey[] {
  if (order === undefined || order === null || order === '') return [];
  if (typeof order !== 'string') throw refuse.invalidArgument("order is text such as '-createdAt,title'");
  const keys = new Map<string, RequestedSortKey>();
  const entries = order.split(',');
  if (entries.length > MAX_SORT_KEYS)
    throw refuse.invalidArgument(`order names at most ${MAX_SORT_KEYS} fields`);
  for (const entry of entries) {
    const key = sortKey(entry.trim(), access);
    if (!keys.has(key.field)) keys.set(key.field, key);
  }
  return [...keys.values()];
}

function sortKey(entry: string, access: ClassAccess): RequestedSortKey {
  const name = entry.replace(/^-/, '');
  if (!isFieldPath(name)) {
    throw refuse.invalidArgument("order entries are field names, with '-' in front for descending");
  }
  const [, worded, direction = ''] = /^(.*\S)\s+(asc|desc)(?:ending)?$/i.exec(name) ?? [];
  // Names of plain collections may hold blanks.
  if (worded !== undefined && !(access.readable?.has(name) ?? access.schema?.fields.has(name)))
    throw refuse.invalidArgument(
      `order: write '${/^desc/i.test(direction) ? '-' : ''}${worded}' for '${name}'`,
    );
  const field = access.names.wirePath(name);
  if (hasInternalSegment(name) || hasInternalSegment(field))
    throw refuse.invalidArgument(`order cannot use '${name}'`);
  assertReadable('order field', name, field, access);
  const withheld = withheldTarget(field, access);
  if (withheld) throw new Refused(withheld.refusal);
  assertHasMembers(field, access);
  // Rows are sorted by stored values: their order would reveal ids.
  if (mayHoldWithheld(field, access)) {
    throw refuse.invalidArgument(
      `'${takeRoot(field)}' may hold objects of classes that are not yours: order cannot use it; ` +
        'aggregate can, by a $sort, which sees placeholders in their place',
    );
  }
  return { field, descending: entry.startsWith('-') };
}

/** A path may lead into objects and lists. A pointer leads to another class, other values have no fields. */
function assertHasMembers(path: string, { schema }: ClassAccess): void {
  const root = takeRoot(path);
  const type = schema?.fields.get(root)?.type;
  if (path === root || type === undefined || type === 'Object' || type === 'Array') return;
  throw refuse.invalidArgument(
    type === 'Pointer' || type === 'Relation'
      ? `'${root}' points to another class: order cannot follow it`
      : `'${root}' is a ${type}: order cannot look inside it`,
  );
}

const TEXT: ReadonlySet<FieldType> = new Set(['String', 'Array', 'Object']);
/** The types that a search covers by default. Columns of type Object are searched only when named. */
const SEARCHED_TYPES: ReadonlySet<FieldType> = new Set(['String', 'Array']);
const COUNTED_TYPES: ReadonlySet<FieldType> = new Set([
  'String',
  'Array',
  'Object',
  'Number',
  'Date',
  'Boolean',
]);

/**
 * All columns with text that the agent may read. A wildcard would also cover internal and hidden columns and ids of withheld
 * classes.
 * @throws Refused `invalid_argument` when there is none
 */
export function allTextFields(access: ClassAccess): readonly string[] {
  return textFields(access, () => true);
}

/** Those of them without objects of withheld classes: for counts, which row limits do not narrow. */
export function listCountedTextFields(access: ClassAccess): readonly string[] {
  return textFields(access, (name) => !mayHoldWithheld(name, access));
}

function textFields(access: ClassAccess, isMeant: (name: string) => boolean): readonly string[] {
  const names = [...(access.schema?.fields ?? [])]
    .filter(([name, { type }]) => SEARCHED_TYPES.has(type) && isOpen(name, access) && isMeant(name))
    .map(([name]) => name);
  if (names.length === 0)
    throw refuse.invalidArgument(`class '${access.className}' has no text that could be searched`);
  return names;
}

/** The readable columns of type String. */
export function stringFields(access: ClassAccess): readonly string[] {
  return [...(access.schema?.fields ?? [])]
    .filter(([name, { type }]) => type === 'String' && isOpen(name, access))
    .map(([name]) => name);
}

/** The wire path of a field to search in, written in any spelling. @throws Refused */
export function checkSearchedField(written: string, access: ClassAccess, argument: string): string {
  return checkField(written, access, argument, TEXT, 'holds no text');
}

/** The wire path of a field to count by. @throws Refused */
export function facetField(written: string, access: ClassAccess, argument: string): string {
  const path = checkField(written, access, argument, COUNTED_TYPES, 'cannot be counted by');
  if (!mayHoldWithheld(path, access)) return path;
  // The search process counts, where placeholders cannot replace objects.
  throw refuse.invalidArgument(
    `${argument}: '${cutText(written, 128)}' may hold objects of classes that are not yours: count it by group_by`,
  );
}

function checkField(
  written: string,
  access: ClassAccess,
  argument: string,
  types: ReadonlySet<FieldType>,
  issue: string,
): string {
  const path = resolveFieldPath(written, access, argument);
  const withheld = withheldTarget(path, access);
  if (withheld) throw new Refused(withheld.refusal);
  const type = access.schema?.fields.get(takeRoot(path))?.type;
  const shownName = cutText(written, 128);
  if (type === undefined) throw refuse.invalidArgument(`${argument}: there is no field '${shownName}'`);
  if (!types.has(type)) throw refuse.invalidArgument(`${argument}: '${shownName}' ${issue}`);
  return path;
}

function isOpen(name: string, access: ClassAccess): boolean {
  return (
    name !== 'objectId' &&
    !isInternalField(name) &&
    (access.readable?.has(name) ?? true) &&
    !withheldTarget(name, access)
  );
}
