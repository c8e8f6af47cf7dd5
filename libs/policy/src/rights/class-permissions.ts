import { isRolePrincipal, type Principals, PUBLIC_PRINCIPAL } from '#agent';
import type { ClassLevelPermissions } from '../model/class-schema.js';
import { isPlainObject } from '../model/plain-object.js';

export type ReadOperation = 'find' | 'count' | 'get';
export type ClassOperation = ReadOperation | 'create' | 'update' | 'delete' | 'addField';

/** Why a class is open to a caller. `pointer`: only those of its rows that name the caller in one of these fields. */
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
        | 'master_only';
    };

const READS: ReadonlySet<ClassOperation> = new Set(['find', 'count', 'get']);
/** Members of a rule that are no principals, whatever a user may be called. */
const CONDITIONS: ReadonlySet<string> = new Set(['requiresAuthentication', 'pointerFields']);

const denied = (reason: Extract<PermissionVerdict, { outcome: 'denied' }>['reason']): PermissionVerdict => ({
  outcome: 'denied',
  reason,
});

/**
 * Whether class-level permissions let a caller do something. Public, user and role grants come first; without one, pointer
 * fields limit the rows even of a caller who is signed in.
 * @param permissions `null`: none were ever set, everything is open. `undefined`: they are not known, nothing is
 */
export function judgeOperation(
  permissions: ClassLevelPermissions | null | undefined,
  operation: ClassOperation,
  principals: Principals,
): PermissionVerdict {
  if (principals.strings === null) return { outcome: 'allowed', via: 'master' };
  if (permissions === undefined) return denied('clp_unresolvable');
  if (permissions === null) return { outcome: 'allowed', via: 'public_default' };
  const rule = permissions[operation];
  if (rule === undefined) return { outcome: 'allowed', via: 'public_default' };
  if (!isPlainObject(rule)) return denied('malformed_clp');
  const grant = grantOf(rule, principals.strings);
  if (grant) return { outcome: 'allowed', via: grant };
  const owners = ownerFields(rule, permissions, operation);
  if (owners === null) return denied('malformed_clp');
  if (owners.length > 0) {
    if (principals.userId === null) return denied('concrete_user_required');
    return { outcome: 'allowed', via: 'pointer', pointerFields: owners };
  }
  if (rule['requiresAuthentication'] !== true) return denied('clp_denied');
  return principals.userId === null
    ? denied('authentication_required')
    : { outcome: 'allowed', via: 'authenticated' };
}

function grantOf(
  rule: Readonly<Record<string, unknown>>,
  principals: readonly string[],
): 'public' | 'user' | 'role' | null {
  // Open to everyone is open to a role that counts its rows strictly, too.
  const granted = [PUBLIC_PRINCIPAL, ...principals].filter(
    (name) => !CONDITIONS.has(name) && Object.hasOwn(rule, name) && rule[name] === true,
  );
  if (granted.includes(PUBLIC_PRINCIPAL)) return 'public';
  const [first] = granted;
  if (first === undefined) return null;
  return isRolePrincipal(first) ? 'role' : 'user';
}

/** Fields that must name the caller; null when they are declared in a form nobody could read. */
function ownerFields(
  rule: Readonly<Record<string, unknown>>,
  permissions: ClassLevelPermissions,
  operation: ClassOperation,
): readonly string[] | null {
  // A row that does not exist yet names nobody.
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

export function isNameList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}
