import { storedPointerColumn } from '../masking/column-masks.js';
import { withPlaceholders } from '../masking/withheld-objects.js';
import type { ClassAccess } from '../model/class-access.js';
import { ALWAYS_KEEP, INTERNAL_FIELDS } from '../model/field-names.js';
import { readableFields } from '../where/requested-fields.js';
import type { Stage } from './stages.js';

/** Internal columns by one name each: stored, `ACL` is three of them and `sessionToken` another, and none may be listed twice. */
export const TAKEN_COLUMNS: readonly string[] = INTERNAL_FIELDS.filter(
  (name) => name !== 'ACL' && name !== 'sessionToken',
);

/** What `_User` holds when its schema is not known. */
const USER_COLUMNS = [...ALWAYS_KEEP, 'username', 'email', 'emailVerified'];

/**
 * The fields a document of the class may show, when that can be listed: the allowlist, and on `_User` the declared
 * columns, because its login providers' columns have names that no list of internal columns can hold.
 */
export function shownFields(access: ClassAccess): readonly string[] | null {
  if (access.readable === null && access.className !== '_User') return null;
  const listed = access.readable ?? new Set(access.schema?.fields.keys() ?? USER_COLUMNS);
  return readableFields(listed).filter(
    (name) =>
      !access.guarded?.hidden.has(name) && (!access.withheld?.has(name) || isWithheldPointer(access, name)),
  );
}

/** What is taken from documents whose fields cannot be listed. */
export function takenColumns(access: ClassAccess): readonly string[] {
  const withheld = [...(access.withheld?.keys() ?? [])];
  return [...TAKEN_COLUMNS, ...withheld.filter((name) => !isWithheldPointer(access, name))];
}

/** A pointer has one value that can be told from none; a list of objects is not shown at all. */
function isWithheldPointer({ withheld, schema }: ClassAccess, name: string): boolean {
  return withheld !== undefined && withheld.has(name) && schema?.fields.get(name)?.type === 'Pointer';
}

/** The pointers into withheld classes, by wire name. */
function withheldPointers(access: ClassAccess): readonly string[] {
  return [...(access.withheld?.keys() ?? [])].filter((name) => isWithheldPointer(access, name));
}

/** Columns that a pipeline sees in another form, by wire name. */
type Seen = Readonly<Record<string, unknown>>;

/**
 * Columns that lead into withheld classes or may hold objects of them, with placeholders in their place.
 * @param row what the columns are looked up in: `$` for the document, `$$row.` for a variable
 */
export function seenColumns(access: ClassAccess, isRead: (column: string) => boolean, row = '$'): Seen {
  const { mayHold } = access;
  const read = [...(mayHold?.columns ?? [])].filter(isRead);
  return {
    ...Object.fromEntries(
      withheldPointers(access).map((name) => [name, pointerPlaceholder(`${row}${name}`, access, name)]),
    ),
    ...(mayHold &&
      Object.fromEntries(read.map((name) => [name, withPlaceholders(`${row}${name}`, mayHold.names)]))),
  };
}

/**
 * The same for every pointer of the column, so that nothing can be told from it but that one is there. A stored pointer is a
 * text; the placeholder itself, an object, stays what it is where a union looks at its rows twice.
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
 * A placeholder stands under the name of the field; the pointer would still be there under its storage name.
 * @param row the path to the rows: `joined.`; default: the document itself
 */
export function withoutStored(access: ClassAccess, row = ''): Stage[] {
  const stored = withheldPointers(access).map((name) => row + storedPointerColumn(name));
  return stored.length > 0 ? [{ $unset: stored }] : [];
}

const always = () => true;

/**
 * The stages that leave of every document only what the caller's stages may see, whatever they do with it whole.
 * @param isRead whether they may look into a column; default: into every one
 */
export function sourceProjection(access: ClassAccess, isRead: (column: string) => boolean = always): Stage[] {
  const shown = shownFields(access);
  const seen = seenColumns(access, isRead);
  if (shown === null)
    return [
      { $unset: takenColumns(access) },
      ...(Object.keys(seen).length > 0 ? [{ $addFields: seen }] : []),
      ...withoutStored(access),
    ];
  const kept = shown.map((name) => [name, seen[name] ?? 1] as const);
  // The id comes along with every projection that does not say no to it.
  const withoutId = access.guarded?.hidden.has('objectId') ? ([['objectId', 0]] as const) : [];
  return [{ $project: Object.fromEntries([...kept, ...withoutId]) }];
}
