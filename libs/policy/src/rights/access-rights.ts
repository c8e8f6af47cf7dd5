import { type Principals, type Refusal, refusals } from '#core';
import type { ClassSchema, SchemaSnapshot } from '../model/class-schema.js';
import { allOf, type Where } from '../model/where.js';
import {
  type ClassOperation,
  isReadableProtection,
  operationVerdict,
  type PermissionVerdict,
  type ProtectedColumns,
  protectedColumns,
  type ReadOperation,
} from './class-permissions.js';

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
    const key = `${operation} ${className}`;
    const known = this.verdicts.get(key);
    if (known) return known;
    const verdict = this.decide(className, operation);
    this.verdicts.set(key, verdict);
    return verdict;
  }

  protectedColumns(className: string): ProtectedColumns | null {
    const known = this.columns.get(className);
    if (known !== undefined) return known;
    const permissions = this.schemas.get(className)?.classLevelPermissions ?? null;
    const columns = protectedColumns(className, permissions, this.principals);
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
      verdict.via === 'pointer' ? ownedBy(userId, verdict.pointerFields, this.schemas.get(className)) : null;
    const ownSession =
      className === '_Session' ? ownedBy(userId, ['user'], this.schemas.get(className)) : null;
    const right = operation === 'update' || operation === 'delete' ? '$writableBy' : '$readableBy';
    return allOf({ [right]: { principals: strings } }, owned, ownSession);
  }

  private decide(className: string, operation: ClassOperation): PermissionVerdict {
    if (this.unlimited) return { outcome: 'allowed', via: 'master' };
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
function ownedBy(userId: string | null, fields: readonly string[], schema: ClassSchema | undefined): Where {
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
