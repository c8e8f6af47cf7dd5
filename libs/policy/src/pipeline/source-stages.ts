import { withoutContainer, withPlaceholders } from '../masking/withheld-objects.js';
import type { ClassAccess } from '../model/class-access.js';
import { ALWAYS_KEEP, INTERNAL_FIELDS, toStoredPointerColumn } from '../model/field-names.js';
import { readableFields } from '../where/requested-fields.js';
import { nameNothing } from './project-stage.js';
import type { Stage } from './stages.js';

/** Internal columns by one name each: in storage form `ACL` and `sessionToken` are others of them, and `$unset` refuses duplicates. */
export const TAKEN_COLUMNS: readonly string[] = INTERNAL_FIELDS.filter(
  (name) => name !== 'ACL' && name !== 'sessionToken',
);

/** The columns of `_User` when its schema is unknown. */
const USER_COLUMNS = [...ALWAYS_KEEP, 'username', 'email', 'emailVerified'];

/**
 * The fields that a document of the class may show, when they can be listed: the allowlist, and for `_User` the columns of its
 * schema, because the columns of login providers cannot be listed.
 */
export function listShownFields(access: ClassAccess): readonly string[] | null {
  if (access.readable === null && access.className !== '_User') return null;
  const listed = access.readable ?? new Set(access.schema?.fields.keys() ?? USER_COLUMNS);
  return readableFields(listed).filter(
    (name) =>
      !access.guarded?.hidden.has(name) && (!access.withheld?.has(name) || isWithheldPointer(access, name)),
  );
}

/** The columns to remove from documents whose fields cannot be listed. */
export function listTakenColumns(access: ClassAccess): readonly string[] {
  const withheld = [...(access.withheld?.keys() ?? [])];
  return [...TAKEN_COLUMNS, ...withheld.filter((name) => !isWithheldPointer(access, name))];
}

/** A withheld pointer is shown as a placeholder; a withheld list of objects is not shown at all. */
function isWithheldPointer({ withheld, schema }: ClassAccess, name: string): boolean {
  return withheld !== undefined && withheld.has(name) && schema?.fields.get(name)?.type === 'Pointer';
}

/** The pointers to withheld classes, by wire name. */
function withheldPointers(access: ClassAccess): readonly string[] {
  return [...(access.withheld?.keys() ?? [])].filter((name) => isWithheldPointer(access, name));
}

/** Of numbers and dates, which indexes sort, only paths into them are refused. */
const isText = (name: string, { schema }: ClassAccess): boolean =>
  schema?.fields.get(name)?.type === 'String';

/** What the stages of a caller use of the documents. */
export interface Use {
  /** Whether they may read a column, by name or within a whole document. */
  readonly reads: (column: string) => boolean;
  /** Whether they write a name anywhere. */
  readonly writes: (name: string) => boolean;
}

/** The expressions of columns that a pipeline sees in another form, by wire name. */
type Seen = Readonly<Record<string, unknown>>;

/**
 * Columns that point to withheld classes or may hold objects of them, with placeholders for those objects. A pointer that the
 * stages write in its storage form has the placeholder there too.
 * @param row the prefix of the columns: `$` for the document, `$$row.` for a variable
 */
export function describeSeenColumns(access: ClassAccess, { reads, writes }: Use, row = '$'): Seen {
  const { mayHold, flat } = access;
  const read = [...(mayHold?.columns ?? [])].filter(reads);
  return {
    ...Object.fromEntries(
      withheldPointers(access).flatMap((name) => {
        const placeholder = pointerPlaceholder(`${row}${name}`, access, name);
        const stored = toStoredPointerColumn(name);
        return [[name, placeholder], ...(writes(stored) ? [[stored, placeholder]] : [])];
      }),
    ),
    ...(mayHold &&
      Object.fromEntries(read.map((name) => [name, withPlaceholders(`${row}${name}`, mayHold.names)]))),
    ...Object.fromEntries(
      [...(flat ?? [])]
        .filter((name) => isText(name, access) && reads(name))
        .map((name) => [name, withoutContainer(`${row}${name}`)]),
    ),
  };
}

/**
 * The same placeholder for every pointer of the column: it shows only that there is one. A stored pointer is a text; an object is
 * a placeholder already, in a union that is projected twice.
 */
function pointerPlaceholder(value: string, { withheld }: ClassAccess, name: string): unknown {
  const className = withheld?.get(name)?.className;
  return {
    $cond: [
      { $in: [{ $type: value }, ['string', 'object']] },
      { $literal: { className, __redacted: true } },
      '$$REMOVE',
    ],
  };
}

/**
 * Removes the storage columns that no placeholder replaced.
 * @param row the path to the rows: `joined.`; default: the document itself
 */
export function withoutStored(access: ClassAccess, { writes }: Use, row = ''): Stage[] {
  const stored = withheldPointers(access)
    .map(toStoredPointerColumn)
    .filter((name) => !writes(name));
  return stored.length > 0 ? [{ $unset: stored.map((name) => row + name) }] : [];
}

/** Names of fields, and behind them the storage columns that have a placeholder. */
export const withStored = (fields: readonly string[], seen: Seen): string[] => [
  ...fields,
  ...fields.map(toStoredPointerColumn).filter((name) => name in seen),
];

const NO_USE: Use = { reads: () => false, writes: () => false };

/** By the access: it ends with its agent definition, policy version and schema snapshot. */
const kept = new WeakMap<ClassAccess, readonly Stage[]>();

/** The stages that reduce every document to what the stages of the caller may see, also as a whole. */
export function sourceProjection(access: ClassAccess, use: Use): readonly Stage[] {
  const { mayHold, flat } = access;
  const texts = [...(flat ?? [])].filter((name) => isText(name, access));
  const isUsed =
    [...(mayHold?.columns ?? []), ...texts].some(use.reads) ||
    withheldPointers(access).some((name) => use.writes(toStoredPointerColumn(name)));
  if (isUsed) return buildProjection(access, use);
  // Without such a column the stages are the same for every pipeline.
  let stages = kept.get(access);
  if (!stages) kept.set(access, (stages = freezeDeep(buildProjection(access, NO_USE))));
  return stages;
}

/** Also what is inside: calls share it. */
function freezeDeep<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(freezeDeep);
  return Object.freeze(value);
}

function buildProjection(access: ClassAccess, use: Use): Stage[] {
  const shown = listShownFields(access);
  const seen = describeSeenColumns(access, use);
  if (shown === null)
    return [
      { $unset: listTakenColumns(access) },
      ...(Object.keys(seen).length > 0 ? [{ $addFields: seen }] : []),
      ...withoutStored(access, use),
    ];
  const kept = withStored(shown, seen).map((name) => [name, seen[name] ?? 1] as const);
  // A projection contains the id unless it is excluded.
  const withoutId = access.guarded?.hidden.has('objectId') ? ([['objectId', 0]] as const) : [];
  return [{ $project: nameNothing(Object.fromEntries([...kept, ...withoutId])) }];
}
