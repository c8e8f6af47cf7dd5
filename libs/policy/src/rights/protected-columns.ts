import { type Principals, PUBLIC_PRINCIPAL } from '#agent';
import type { ClassLevelPermissions } from '../model/class-schema.js';
import { rootOf } from '../model/field-names.js';
import { isPlainObject } from '../model/plain-object.js';
import { isNameList } from './class-permissions.js';

type Row = Readonly<Record<string, unknown>>;

/** Columns that class-level permissions hide from one caller. */
export interface ProtectedColumns {
  /** What no query may name, and no row shows unless an exception of its own says so. Never empty. */
  readonly hidden: ReadonlySet<string>;
  /** Some rows may be shown differently, so rows must be looked at one by one. */
  readonly perRow: boolean;
  /** Columns that must be fetched to look at a row. */
  readonly deciders: readonly string[];
  hiddenOn(row: Row): ReadonlySet<string>;
}

/** What Parse Server protects on top of every class's own permissions. */
const ALWAYS_PROTECTED: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  _User: { [PUBLIC_PRINCIPAL]: ['email'] },
};

const ROW_RULE = 'userField:';

const NOTHING: ReadonlySet<string> = new Set();

interface RowRule {
  readonly field: string;
  readonly columns: ReadonlySet<string>;
}

/** Whether `protectedFields` can be read at all; where it cannot, its class is closed. */
export function isReadableProtection(permissions: ClassLevelPermissions | null): boolean {
  const declared = permissions?.['protectedFields'];
  return declared === undefined || (isPlainObject(declared) && Object.values(declared).every(isNameList));
}

/**
 * Hidden is what every list that applies to the caller names: `*`, `authenticated`, its roles, its id, and on rows that
 * point at it `userField:<f>`. A list that names less shows more. Null: nothing is hidden.
 */
export function protectedColumns(
  className: string,
  permissions: ClassLevelPermissions | null,
  principals: Principals,
): ProtectedColumns | null {
  const { strings, userId } = principals;
  if (strings === null) return null;
  const lists = listsOf(className, permissions);
  // What is hidden from everyone is hidden from strict roles, whose principals leave everyone out.
  const entities = new Set([PUBLIC_PRINCIPAL, ...strings, ...(userId === null ? [] : ['authenticated'])]);
  const general = intersection(
    [...lists].filter(([entity]) => entities.has(entity)).map(([, columns]) => columns),
  );
  const rowRules = userId === null ? [] : rowRulesOf(lists);
  const hidden = general ?? union(rowRules.map((rule) => rule.columns));
  if (hidden.size === 0) return null;
  const ownRows = className === '_User' && userId !== null;
  return {
    hidden,
    perRow: ownRows || rowRules.length > 0,
    deciders: rowRules.map((rule) => rule.field),
    hiddenOn: (row) => {
      if (ownRows && row['objectId'] === userId) return NOTHING;
      const matching = rowRules
        .filter((rule) => pointsAt(row[rule.field], userId))
        .map((rule) => rule.columns);
      return intersection(general ? [general, ...matching] : matching) ?? NOTHING;
    },
  };
}

function listsOf(
  className: string,
  permissions: ClassLevelPermissions | null,
): ReadonlyMap<string, ReadonlySet<string>> {
  const lists = new Map<string, ReadonlySet<string>>();
  const declared = permissions?.['protectedFields'];
  if (isPlainObject(declared)) {
    for (const [entity, names] of Object.entries(declared)) {
      if (isNameList(names)) lists.set(entity, new Set(names.map(rootOf)));
    }
  }
  for (const [entity, names] of Object.entries(ALWAYS_PROTECTED[className] ?? {})) {
    lists.set(entity, new Set([...(lists.get(entity) ?? []), ...names]));
  }
  return lists;
}

function rowRulesOf(lists: ReadonlyMap<string, ReadonlySet<string>>): RowRule[] {
  return [...lists]
    .filter(([entity]) => entity.startsWith(ROW_RULE))
    .map(([entity, columns]) => ({ field: entity.slice(ROW_RULE.length), columns }));
}

/** A pointer to the user, an included user, or a list with one among them. Look-alikes do not count. */
function pointsAt(value: unknown, userId: string | null): boolean {
  if (Array.isArray(value)) return value.some((entry) => !Array.isArray(entry) && pointsAt(entry, userId));
  if (!isPlainObject(value) || value['className'] !== '_User' || value['objectId'] !== userId) return false;
  return value['__type'] === 'Pointer' || value['__type'] === 'Object';
}

function intersection(sets: readonly ReadonlySet<string>[]): ReadonlySet<string> | null {
  const [first, ...others] = sets;
  if (!first) return null;
  return new Set([...first].filter((name) => others.every((other) => other.has(name))));
}

function union(sets: readonly ReadonlySet<string>[]): ReadonlySet<string> {
  return new Set(sets.flatMap((set) => [...set]));
}
