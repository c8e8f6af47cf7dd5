/** Who signed in with a session token, and until when it holds. */
export interface SessionOwner {
  /** Object id in `_User`. */
  readonly userId: string;
  /** `null`: it does not end by itself. */
  readonly expiresAt: Date | null;
}

/** Whose roles are meant: those of a user, or those that a role inherits. */
export type RoleHolder = { readonly userId: string } | { readonly role: string };

/** Levels of inheritance above the roles that somebody holds directly. */
export const MAX_ROLE_DEPTH = 10;

/**
 * Who holds which rights, as Parse keeps it in `_Session`, `_User` and `_Role`. A role that lists another one among its
 * `roles` is inherited by that other one's members, so inheritance is followed upwards: each role once, at most
 * `MAX_ROLE_DEPTH` levels. Names and tokens are values only, never parts of a query.
 * @throws StoreError
 */
export abstract class PrincipalDirectory {
  /** Null: no such session, it has expired, or its user is gone. */
  abstract ownerOfSession(token: string): Promise<SessionOwner | null>;
  /** Names of the roles of a user, inherited ones included, sorted. */
  abstract rolesOfUser(userId: string): Promise<readonly string[]>;
  /** The role itself and all it inherits, sorted. Null: no such role. */
  abstract rolesOfRole(name: string): Promise<readonly string[] | null>;
  /** What was learnt about the roles of this user or role is learnt anew. */
  forgetRoles(_holder: RoleHolder): void {}
}
