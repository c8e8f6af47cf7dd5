/** Everyone, signed in or not. */
export const PUBLIC_PRINCIPAL = '*';

const ROLE_PREFIX = 'role:';
const USER_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** With whose rights a call reads. Worked out once per call, before it reads anything. */
export interface Principals {
  /** `*`, a user id, `role:<name>`: what row and class permissions are matched against. `null`: the master key. */
  readonly strings: readonly string[] | null;
  /** The user, when there is a concrete one: a role alone is nobody in particular. */
  readonly userId: string | null;
}

/** No row or class permission is asked. */
export const MASTER_PRINCIPALS: Principals = Object.freeze({ strings: null, userId: null });

export function principalsOf(userId: string | null, roles: Iterable<string>): Principals {
  const own = userId === null ? [] : [userId];
  const held = [...roles].map((role) => ROLE_PREFIX + role);
  return Object.freeze({
    strings: Object.freeze([...new Set([PUBLIC_PRINCIPAL, ...own, ...held])]),
    userId,
  });
}

/** Of roles alone, without what is everyone's: row rights must name one of them, or be absent. */
export function strictPrincipals(roles: Iterable<string>): Principals {
  const strings = (principalsOf(null, roles).strings ?? []).filter((name) => name !== PUBLIC_PRINCIPAL);
  return Object.freeze({ strings: Object.freeze(strings), userId: null });
}

/** Anything else could be taken for a role, or for more than one user. */
export function isUserId(value: unknown): value is string {
  return typeof value === 'string' && USER_ID.test(value);
}

/** A role by its name, with or without the prefix it carries as a principal. */
export function roleNameOf(text: string): string {
  return text.startsWith(ROLE_PREFIX) ? text.slice(ROLE_PREFIX.length) : text;
}

export function isRolePrincipal(principal: string): boolean {
  return principal.startsWith(ROLE_PREFIX);
}
