/** On whose behalf data is read. Exactly one per agent; never taken from tool arguments. */
export type Identity =
  | { readonly kind: 'master' }
  | { readonly kind: 'sessionToken'; readonly token: string }
  | { readonly kind: 'aclUser'; readonly userId: string }
  | { readonly kind: 'aclRole'; readonly role: string };

export const MASTER: Identity = Object.freeze({ kind: 'master' });

/** The token can be read by name and is otherwise absent: it appears in no log line and no serialised agent. */
export function sessionIdentity(token: string): Identity {
  const identity = Object.defineProperty({ kind: 'sessionToken' as const, token }, 'token', {
    enumerable: false,
  });
  return Object.freeze(identity);
}

export type AuthType = 'master_key' | 'session_token' | 'acl_user' | 'acl_role';

const AUTH_TYPES: Record<Identity['kind'], AuthType> = {
  master: 'master_key',
  sessionToken: 'session_token',
  aclUser: 'acl_user',
  aclRole: 'acl_role',
};

/** The name audit records use for an identity. */
export function authType(identity: Identity): AuthType {
  return AUTH_TYPES[identity.kind];
}

/** Who was assumed: a user id or a role name. Null for the master key, and for a session, whose user is the principal. */
export function assumedName(identity: Identity): string | null {
  if (identity.kind === 'aclUser') return identity.userId;
  return identity.kind === 'aclRole' ? identity.role : null;
}
