import { canonicalClassName } from './class-names.js';

/** The identity under which data is read. Exactly one per agent; never taken from tool arguments. */
export type Identity =
  | { readonly kind: 'master' }
  | { readonly kind: 'sessionToken'; readonly token: string }
  | { readonly kind: 'aclUser'; readonly userId: string }
  | { readonly kind: 'aclRole'; readonly role: string };

export const MASTER: Identity = Object.freeze({ kind: 'master' });

/** The token is not enumerable, so that no log line and no serialised agent contains it. */
export function sessionIdentity(token: string): Identity {
  const identity = Object.defineProperty({ kind: 'sessionToken' as const, token }, 'token', {
    enumerable: false,
  });
  return Object.freeze(identity);
}

const MAX_LABEL = 128;

export type AuthType = 'master_key' | 'session_token' | 'acl_user' | 'acl_role';

const AUTH_TYPES: Record<Identity['kind'], AuthType> = {
  master: 'master_key',
  sessionToken: 'session_token',
  aclUser: 'acl_user',
  aclRole: 'acl_role',
};

/** The kind of an identity in audit records. */
export function authType(identity: Identity): AuthType {
  return AUTH_TYPES[identity.kind];
}

/** The assumed user id or role name. Null for the master key, and for a session, whose user is the principal. */
export function readAssumedName(identity: Identity): string | null {
  if (identity.kind === 'aclUser') return identity.userId;
  return identity.kind === 'aclRole' ? identity.role : null;
}

/** Every caller, signed in or not. */
export const PUBLIC_PRINCIPAL = '*';

const ROLE_PREFIX = 'role:';
const USER_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** The principals whose rights a call has. Resolved once per call, before it reads data. */
export interface Principals {
  /** `*`, a user id, `role:<name>`: matched against row and class-level permissions. `null`: the master key. */
  readonly strings: readonly string[] | null;
  /** Null when there is no concrete user, as with a role alone. */
  readonly userId: string | null;
}

/** The master key: row and class-level permissions are not checked. */
export const MASTER_PRINCIPALS: Principals = Object.freeze({ strings: null, userId: null });

export function createPrincipals(userId: string | null, roles: Iterable<string>): Principals {
  const own = userId === null ? [] : [userId];
  const held = [...roles].map((role) => ROLE_PREFIX + role);
  return Object.freeze({
    strings: Object.freeze([...new Set([PUBLIC_PRINCIPAL, ...own, ...held])]),
    userId,
  });
}

/** Of roles without `*`: a row must have no ACL or name one of these roles. */
export function strictPrincipals(roles: Iterable<string>): Principals {
  const strings = (createPrincipals(null, roles).strings ?? []).filter((name) => name !== PUBLIC_PRINCIPAL);
  return Object.freeze({ strings: Object.freeze(strings), userId: null });
}

/** Rejects ids that could be read as a role or as more than one user. */
export function isUserId(value: unknown): value is string {
  return typeof value === 'string' && USER_ID.test(value);
}

/** The name of a role, given with or without the `role:` prefix. */
export function toRoleName(text: string): string {
  return text.startsWith(ROLE_PREFIX) ? text.slice(ROLE_PREFIX.length) : text;
}

export function isRolePrincipal(principal: string): boolean {
  return principal.startsWith(ROLE_PREFIX);
}

/** The database rights that a sub-agent would have beyond those of its parent. */
export interface Widening {
  readonly reason: 'child_master_key' | 'child_extra_principals';
  readonly parent: readonly string[];
  /** Empty for the master key. */
  readonly child: readonly string[];
  /** Principals of the child that the parent does not have. */
  readonly extra: readonly string[];
}

/** Null when the rights of the child are a subset of those of the parent; the master key has all. */
export function findWidening(parent: Principals, child: Principals): Widening | null {
  if (parent.strings === null) return null;
  if (child.strings === null)
    return { reason: 'child_master_key', parent: parent.strings, child: [], extra: [] };
  const held = new Set(parent.strings);
  const extra = child.strings.filter((principal) => !held.has(principal));
  if (extra.length === 0) return null;
  return { reason: 'child_extra_principals', parent: parent.strings, child: child.strings, extra };
}

/** An id, or a user object or pointer. */
export type UserReference = string | { readonly className?: unknown; readonly objectId?: unknown };

/** To act as a user through a session of that user, which is not looked up yet. */
export interface ImpersonationOrder {
  readonly kind: 'impersonate';
  readonly userId: string;
  readonly mint: boolean;
}

/** A pointer must be to `_User`: another class may have an object of the same id. @throws TypeError naming the option */
export function readUserId(user: unknown, option: string): string {
  if (isUserId(user)) return user;
  const { className, objectId } = (typeof user === 'object' && user !== null ? user : {}) as Record<
    string,
    unknown
  >;
  if (typeof className === 'string' && canonicalClassName(className) === '_User' && isUserId(objectId))
    return objectId;
  throw new TypeError(`${option}: expected the objectId of a user, or a pointer to _User`);
}

/** The trimmed text, or null when it is empty, too long or no text. */
export function impersonationLabel(value: unknown): string | null {
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' || text.length > MAX_LABEL ? null : text;
}

export const TIERS = ['readonly', 'write', 'admin'] as const;
/** The permission level of an agent; each includes those before it. */
export type Tier = (typeof TIERS)[number];

export function isTier(value: unknown): value is Tier {
  return TIERS.includes(value as Tier);
}

/** Whether level `held` includes level `needed`. An unknown level counts as `readonly`. */
export function tierCovers(held: Tier, needed: Tier): boolean {
  return Math.max(TIERS.indexOf(held), 0) >= TIERS.indexOf(needed);
}
