import { createHash } from 'node:crypto';
import { ageClock } from '#core';
import type { WriteStore } from '../record-store.js';
import { ExpiringCache } from './expiring-cache.js';

/** The user of a session token, and its expiry. */
export interface SessionOwner {
  /** Object id in `_User`. */
  readonly userId: string;
  /** `null`: it does not expire. */
  readonly expiresAt: Date | null;
}

export const USER_FIELDS = ['objectId', 'username', 'email'] as const;
export type UserField = (typeof USER_FIELDS)[number];

/** The holder of roles: a user, or a role that inherits others. */
type RoleHolder = { readonly userId: string } | { readonly role: string };

/** Levels of inheritance above the roles that a user holds directly. */
export const MAX_ROLE_DEPTH = 10;

/**
 * Who holds which rights, as Parse stores it in `_Session`, `_User` and `_Role`. Members of a role that another role lists in
 * its `roles` inherit that other role, so inheritance is followed upwards: each role once, at most `MAX_ROLE_DEPTH` levels.
 * Names and tokens are only values, never parts of a query.
 * @throws StoreError
 */
export abstract class PrincipalDirectory {
  /** Null: no such session, it has expired, or its user was deleted. */
  abstract ownerOfSession(token: string): Promise<SessionOwner | null>;
  /** The id of the only user with that value; null: none has it, or several have. */
  abstract findUser(field: UserField, value: string): Promise<string | null>;
  /** Names of the roles of a user, inherited ones included, sorted. */
  abstract rolesOfUser(userId: string): Promise<readonly string[]>;
  /** The role itself and all roles that it inherits, sorted. Null: no such role. */
  abstract rolesOfRole(name: string): Promise<readonly string[] | null>;
  /** Removes the cached roles of this user or role. */
  forgetRoles(_holder: RoleHolder): void {}
}

export interface DirectoryCacheOptions {
  /** Seconds for which sessions, and the inherited roles of users and roles, are cached. Default 30. */
  readonly seconds?: number;
  /** Entries per cache; the oldest are removed first, of sessions those of the user that has most. Default 10 000. */
  readonly maxEntries?: number;
  /** Milliseconds; for tests. */
  readonly now?: () => number;
  /** Milliseconds since the epoch, against which sessions expire; for tests. */
  readonly wallClock?: () => number;
}

/**
 * Caches identities and roles. Failed lookups, and sessions that do not exist, are not cached; concurrent requests share one
 * lookup. Several sessions of one user share its roles.
 */
export class CachedPrincipalDirectory extends PrincipalDirectory {
  private readonly sessions: ExpiringCache<SessionOwner | null>;
  private readonly users: ExpiringCache<string | null>;
  private readonly userRoles: ExpiringCache<readonly string[]>;
  private readonly roleRoles: ExpiringCache<readonly string[] | null>;
  private readonly wallClock: () => number;

  constructor(
    private readonly directory: PrincipalDirectory,
    options: DirectoryCacheOptions = {},
  ) {
    super();
    const { seconds = 30, maxEntries = 10_000, now = ageClock } = options;
    this.wallClock = options.wallClock ?? Date.now;
    // One user may have many sessions; every other cache has one entry for each user or role.
    this.sessions = new ExpiringCache(seconds * 1000, maxEntries, now, ({ userId }) => userId);
    this.users = new ExpiringCache(seconds * 1000, maxEntries, now);
    this.userRoles = new ExpiringCache(seconds * 1000, maxEntries, now);
    this.roleRoles = new ExpiringCache(seconds * 1000, maxEntries, now);
  }

  /** Cached for `seconds`, never beyond its expiry. */
  async ownerOfSession(token: string): Promise<SessionOwner | null> {
    const key = digest(token);
    const owner = await this.sessions.get(key, () => this.directory.ownerOfSession(token));
    if (!owner?.expiresAt || owner.expiresAt.getTime() > this.wallClock()) return owner;
    this.sessions.forget(key);
    return null;
  }

  /** Cached for `seconds`. */
  findUser(field: UserField, value: string): Promise<string | null> {
    return this.users.get(JSON.stringify([field, value]), () => this.directory.findUser(field, value));
  }

  /** Cached for `seconds`. */
  rolesOfUser(userId: string): Promise<readonly string[]> {
    return this.userRoles.get(userId, () => this.directory.rolesOfUser(userId));
  }

  /** Cached for `seconds`. */
  rolesOfRole(name: string): Promise<readonly string[] | null> {
    return this.roleRoles.get(name, () => this.directory.rolesOfRole(name));
  }

  /** The session has ended. */
  forgetSession(token: string): void {
    this.sessions.forget(digest(token));
  }

  /** The next call looks them up again. */
  override forgetRoles(holder: RoleHolder): void {
    if ('userId' in holder) this.userRoles.forget(holder.userId);
    else this.roleRoles.forget(holder.role);
  }

  /** Rows of a class were written: removes what was cached from it. */
  forgetClass(className: string): void {
    if (className === '_Session' || className === '_User') this.sessions.clear();
    if (className === '_User') this.users.clear();
    if (className === '_Role' || className === '_User') {
      this.userRoles.clear();
      this.roleRoles.clear();
    }
  }
}

/** Tokens are credentials: the stored form cannot be used as one. */
function digest(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('base64');
}

/** The store, whose writes remove cached entries of the directory that come from the class that was written. */
export function forgettingWrites(
  store: WriteStore,
  directory: Pick<CachedPrincipalDirectory, 'forgetClass'>,
): WriteStore {
  return {
    takesObjectIds: store.takesObjectIds,
    judgesRows: store.judgesRows,
    idFor: (...asked) => store.idFor(...asked),
    // A failed write may have been applied.
    run: (operation, context, caller) =>
      store.run(operation, context, caller).finally(() => directory.forgetClass(operation.className)),
  };
}
