import { Refused, refusals } from '#agent';
import { type ClassAccess, withheldTarget } from '../model/class-access.js';
import { rootOf } from '../model/field-names.js';
import { hasInternalSegment } from '../model/internal-fields.js';
import { mayHoldWithheld } from '../redaction/withheld-inside.js';
import { assertReadable } from './field-path.js';

/** One key of a sort order. */
export interface SortKey {
  /** Wire name, may be dotted. */
  readonly field: string;
  readonly descending: boolean;
}

const ENTRY = /^-?[A-Za-z][A-Za-z0-9_.]{0,127}$/;
/** The database's own limit. */
const MAX_KEYS = 32;

/**
 * `"-createdAt,title"` as sort keys; nothing, when nothing is asked. A field named twice sorts by its first mention.
 * @throws Refused `invalid_argument`, `access_denied`
 */
export function parseOrder(order: unknown, access: ClassAccess): SortKey[] {
  if (order === undefined || order === null || order === '') return [];
  if (typeof order !== 'string') throw refused("order is text such as '-createdAt,title'");
  const keys = new Map<string, SortKey>();
  for (const entry of order.split(',').map((part) => part.trim())) {
    const key = sortKey(entry, access);
    if (!keys.has(key.field)) keys.set(key.field, key);
  }
  if (keys.size > MAX_KEYS) throw refused(`order names at most ${MAX_KEYS} fields`);
  return [...keys.values()];
}

function sortKey(entry: string, access: ClassAccess): SortKey {
  const name = entry.replace(/^-/, '');
  if (!ENTRY.test(entry) || name.split('.').some((segment) => !/^[A-Za-z]/.test(segment))) {
    throw refused("order entries are field names, with '-' in front for descending");
  }
  const field = access.names.wirePath(name);
  if (hasInternalSegment(name) || hasInternalSegment(field)) throw refused(`order cannot use '${name}'`);
  assertReadable('order field', name, field, access);
  const withheld = withheldTarget(field, access);
  if (withheld) throw new Refused(withheld.refusal);
  assertHasMembers(field, access);
  // Rows are sorted as they are stored, so their order would tell of ids.
  if (mayHoldWithheld(field, access)) {
    throw refused(
      `'${rootOf(field)}' may hold objects of classes that are not yours: order cannot use it; ` +
        'aggregate can, by a $sort, which sees placeholders in their place',
    );
  }
  return { field, descending: entry.startsWith('-') };
}

/** A path leads into objects and lists of them. Behind a pointer stands another class, in the rest nothing. */
function assertHasMembers(path: string, { schema }: ClassAccess): void {
  const root = rootOf(path);
  const type = schema?.fields.get(root)?.type;
  if (path === root || type === undefined || type === 'Object' || type === 'Array') return;
  throw refused(
    type === 'Pointer' || type === 'Relation'
      ? `'${root}' points to another class: order cannot follow it`
      : `'${root}' is a ${type}: order cannot look inside it`,
  );
}

function refused(message: string): Refused {
  return new Refused(refusals.invalidArgument(message));
}
