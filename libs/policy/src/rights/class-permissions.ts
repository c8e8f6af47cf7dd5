import { isRolePrincipal, type Principals, PUBLIC_PRINCIPAL, type Refusal, refusals } from '#core';
import type { ClassLevelPermissions, ClassSchema, SchemaSnapshot } from '../model/class-schema.js';
import { takeRoot } from '../model/field-names.js';
import { isPlainObject, mergeFilters, type Where } from '../model/where.js';

export type ReadOperation = 'find' | 'count' | 'get';
export type ClassOperation = ReadOperation | 'create' | 'update' | 'delete' | 'addField';

/** Whether and why a caller may use a class. `pointer`: only rows that name the caller in one of these fields. */
export type PermissionVerdict =
  | {
      readonly outcome: 'allowed';
      readonly via: 'master' | 'public_default' | 'public' | 'user' | 'role' | 'authenticated';
    }
  | { readonly outcome: 'allowed'; readonly via: 'pointer'; readonly pointerFields: readonly string[] }
  | {
      readonly outcome: 'denied';
      readonly reason:
        | 'clp_unresolvable'
        | 'malformed_clp'
        | 'concrete_user_required'
        | 'authentication_required'
        | 'clp_denied'
        | 'master_only'
        | 'no_row_rights';
    };

const READS: ReadonlySet<ClassOperation> = new Set(['find', 'count', 'get']);
/** Members of a rule that are never principals, even if a user has that id. */
const CONDITIONS: ReadonlySet<string> = new Set(['requiresAuthentication', 'pointerFields']);

const deny = (reason: Extract<PermissionVerdict, { outcome: 'denied' }>['reason']): PermissionVerdict => ({
  outcome: 'denied',
  reason,
});

/**
 * Whether class-level permissions allow an operation. Public, user and role grants are checked first; without one, pointer fields
 * limit the rows even for a caller who is signed in.
 * @param permissions `null`: never set, everything is allowed. `undefined`: unknown, nothing is allowed
 */
export function operationVerdict(
  permissions: ClassLevelPermissions | null | undefined,
  operation: ClassOperation,
  principals: Principals,
): PermissionVerdict {
  if (principals.strings === null) return { outcome: 'allowed', via: 'master' };
  if (permissions === undefined) return deny('clp_unresolvable');
  if (permissions === null) return { outcome: 'allowed', via: 'public_default' };
  const rule = permissions[operation];
  if (rule === undefined) return { outcome: 'allowed', via: 'public_default' };
  if (!isPlainObject(rule)) return deny('malformed_clp');
  const grant = findGrant(rule, principals.strings);
  if (grant) return { outcome: 'allowed', via: grant };
  const owners = ownerFields(rule, permissions, operation);
  if (owners === null) return deny('malformed_clp');
  if (owners.length > 0) {
    if (principals.userId === null) return deny('concrete_user_required');
    return { outcome: 'allowed', via: 'pointer', pointerFields: owners };
  }
  if (rule['requiresAuthentication'] !== true) return deny('clp_denied');
  return principals.userId === null
    ? deny('authentication_required')
    : { outcome: 'allowed', via: 'authenticated' };
}

function findGrant(
  rule: Readonly<Record<string, unknown>>,
  principals: readonly string[],
): 'public' | 'user' | 'role' | null {
  // Public access also applies to strict roles, whose principals do not include `*`.
  const granted = [PUBLIC_PRINCIPAL, ...principals].filter(
    (name) => !CONDITIONS.has(name) && Object.hasOwn(rule, name) && rule[name] === true,
  );
  if (granted.includes(PUBLIC_PRINCIPAL)) return 'public';
  const [first] = granted;
  if (first === undefined) return null;
  return isRolePrincipal(first) ? 'role' : 'user';
}

/** Fields that must name the caller; null when their declaration is malformed. */
function ownerFields(
  rule: Readonly<Record<string, unknown>>,
  permissions: ClassLevelPermissions,
  operation: ClassOperation,
): readonly string[] | null {
  // A row that does not exist yet names no user.
  if (operation === 'create') return [];
  const lists = [
    rule['pointerFields'],
    permissions[READS.has(operation) ? 'readUserFields' : 'writeUserFields'],
  ];
  const fields = new Set<string>();
  for (const list of lists) {
    if (list === undefined) continue;
    if (!isNameList(list)) return null;
    for (const name of list) fields.add(name);
  }
  return [...fields];
}

function isNameList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}

type Row = Readonly<Record<string, unknown>>;

/** Columns that class-level permissions hide from one caller. */
export interface ProtectedColumns {
  /** Columns that no query may name and no row shows without an exception. Never empty. */
  readonly hidden: ReadonlySet<string>;
  /** Whether rows may have exceptions and must be checked one by one. */
  readonly perRow: boolean;
  /** Columns that must be fetched to check a row. */
  readonly deciders: readonly string[];
  listHidden(row: Row): ReadonlySet<string>;
}

/** Columns that Parse Server protects in addition to the permissions of the class. */
const ALWAYS_PROTECTED: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  _User: { [PUBLIC_PRINCIPAL]: ['email'] },
};

const ROW_RULE = 'userField:';

const NOTHING: ReadonlySet<string> = new Set();

interface RowRule {
  readonly field: string;
  readonly columns: ReadonlySet<string>;
}

/** Whether `protectedFields` is well-formed; if not, the class is closed. */
export function isReadableProtection(permissions: ClassLevelPermissions | null): boolean {
  const declared = permissions?.['protectedFields'];
  return declared === undefined || (isPlainObject(declared) && Object.values(declared).every(isNameList));
}

/**
 * The hidden columns are those in every list that applies to the caller: `*`, `authenticated`, its roles, its id, and on rows
 * that point to it `userField:<f>`. Null: nothing is hidden.
 */
export function findProtectedColumns(
  className: string,
  permissions: ClassLevelPermissions | null,
  principals: Principals,
): ProtectedColumns | null {
  const { strings, userId } = principals;
  if (strings === null) return null;
  const lists = readLists(className, permissions);
  // Lists for `*` also apply to strict roles, whose principals do not include `*`.
  const entities = new Set([PUBLIC_PRINCIPAL, ...strings, ...(userId === null ? [] : ['authenticated'])]);
  const general = intersection(
    [...lists].filter(([entity]) => entities.has(entity)).map(([, columns]) => columns),
  );
  const rowRules = userId === null ? [] : toRowRules(lists);
  const hidden = general ?? union(rowRules.map((rule) => rule.columns));
  if (hidden.size === 0) return null;
  const ownRows = className === '_User' && userId !== null;
  return {
    hidden,
    perRow: ownRows || rowRules.length > 0,
    deciders: rowRules.map((rule) => rule.field),
    listHidden: (row) => {
      if (ownRows && row['objectId'] === userId) return NOTHING;
      const matching = rowRules
        .filter((rule) => pointsAt(row[rule.field], userId))
        .map((rule) => rule.columns);
      return intersection(general ? [general, ...matching] : matching) ?? NOTHING;
    },
  };
}

function readLists(
  className: string,
  permissions: ClassLevelPermissions | null,
): ReadonlyMap<string, ReadonlySet<string>> {
  const lists = new Map<string, ReadonlySet<string>>();
  const declared = permissions?.['protectedFields'];
  if (isPlainObject(declared)) {
    for (const [entity, names] of Object.entries(declared)) {
      if (isNameList(names)) lists.set(entity, new Set(names.map(takeRoot)));
    }
  }
  for (const [entity, names] of Object.entries(ALWAYS_PROTECTED[className] ?? {})) {
    lists.set(entity, new Set([...(lists.get(entity) ?? []), ...names]));
  }
  return lists;
}

function toRowRules(lists: ReadonlyMap<string, ReadonlySet<string>>): RowRule[] {
  return [...lists]
    .filter(([entity]) => entity.startsWith(ROW_RULE))
    .map(([entity, columns]) => ({ field: entity.slice(ROW_RULE.length), columns }));
}

/** A pointer to the user, the included user, or a list that contains one of them. */
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

/** Parse Server reserves these for the master key, whatever their class-level permissions. */
const MASTER_ONLY = new Set([
  '_JobStatus',
  '_PushStatus',
  '_Hooks',
  '_GlobalConfig',
  '_GraphQLConfig',
  '_JobSchedule',
  '_Audience',
  '_Idempotency',
]);

/** Classes that may be read by id only. */
const NO_SEARCH = new Set(['_Installation']);

/** An operation on existing rows. */
export type RowOperation = ReadOperation | 'update' | 'delete';

/** Matches no row. */
const NO_ROWS: Where = Object.freeze({ objectId: { $in: [] } });

const OF_MASTER: PermissionVerdict = Object.freeze({ outcome: 'allowed', via: 'master' });

/** What the permissions in the database allow one caller: classes, rows and columns. */
export class AccessRights {
  private readonly verdicts = new Map<string, PermissionVerdict>();
  private readonly columns = new Map<string, ProtectedColumns | null>();

  /** The master key: rights of users and roles do not apply. */
  readonly unlimited: boolean;

  constructor(
    private readonly schemas: SchemaSnapshot,
    readonly principals: Principals,
  ) {
    this.unlimited = principals.strings === null;
  }

  /** The gate of class-level permissions. `describe` needs `find` or `get`. */
  gate(className: string, operation: ClassOperation | 'describe'): Refusal | null {
    const operations: readonly ClassOperation[] = operation === 'describe' ? ['find', 'get'] : [operation];
    const verdicts = operations.map((one) => this.verdict(className, one));
    if (verdicts.some((verdict) => verdict.outcome === 'allowed')) return null;
    const [first] = verdicts;
    return refusals.classPermissionDenied(
      className,
      operation,
      first?.outcome === 'denied' ? first.reason : undefined,
    );
  }

  verdict(className: string, operation: ClassOperation): PermissionVerdict {
    if (this.unlimited) return OF_MASTER;
    const key = `${operation} ${className}`;
    const known = this.verdicts.get(key);
    if (known) return known;
    const verdict = this.decide(className, operation);
    this.verdicts.set(key, verdict);
    return verdict;
  }

  findProtectedColumns(className: string): ProtectedColumns | null {
    const known = this.columns.get(className);
    if (known !== undefined) return known;
    const permissions = this.schemas.get(className)?.classLevelPermissions ?? null;
    const columns = findProtectedColumns(className, permissions, this.principals);
    this.columns.set(className, columns);
    return columns;
  }

  /**
   * The rows that a caller may read, or with `update` and `delete` change: by the rights of the row, and by the pointer fields
   * of class-level permissions. Null: all.
   */
  rows(className: string, operation: RowOperation): Where | null {
    const { strings, userId } = this.principals;
    if (strings === null) return null;
    const verdict = this.verdict(className, operation);
    if (verdict.outcome === 'denied') return NO_ROWS;
    const owned =
      verdict.via === 'pointer'
        ? requireOwner(userId, verdict.pointerFields, this.schemas.get(className))
        : null;
    const ownSession =
      className === '_Session' ? requireOwner(userId, ['user'], this.schemas.get(className)) : null;
    const right = operation === 'update' || operation === 'delete' ? '$writableBy' : '$readableBy';
    return mergeFilters({ [right]: { principals: strings } }, owned, ownSession);
  }

  private decide(className: string, operation: ClassOperation): PermissionVerdict {
    // Rows of a plain class name no users and no roles.
    if (this.schemas.get(className)?.storage === 'plain')
      return { outcome: 'denied', reason: 'no_row_rights' };
    const searches = operation === 'find' || operation === 'count';
    if (MASTER_ONLY.has(className) || (NO_SEARCH.has(className) && searches)) {
      return { outcome: 'denied', reason: 'master_only' };
    }
    const permissions = this.schemas.get(className)?.classLevelPermissions;
    if (permissions !== undefined && !isReadableProtection(permissions)) {
      return { outcome: 'denied', reason: 'malformed_clp' };
    }
    return operationVerdict(permissions, operation, this.principals);
  }
}

/** Rows in which one of the fields names the user. A field of another type matches no row. */
function requireOwner(
  userId: string | null,
  fields: readonly string[],
  schema: ClassSchema | undefined,
): Where {
  if (userId === null) return NO_ROWS;
  const user = { __type: 'Pointer', className: '_User', objectId: userId };
  const conditions = fields.flatMap((field): Where[] => {
    switch (schema?.fields.get(field)?.type) {
      case 'Pointer':
      case 'Object':
        return [{ [field]: user }];
      case 'Array':
        return [{ [field]: { $all: [user] } }];
      default:
        return [];
    }
  });
  const [only] = conditions;
  if (only === undefined) return NO_ROWS;
  return conditions.length === 1 ? only : { $or: conditions };
}
