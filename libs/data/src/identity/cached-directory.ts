import { createHash } from 'node:crypto';
import { ExpiringCache } from './expiring-cache.js';
import { PrincipalDirectory, type RoleHolder, type SessionOwner } from './principal-directory.js';

export interface DirectoryCacheOptions {
  /** Seconds a session stands for its user without being looked up again. Default 3600. */
  readonly identitySeconds?: number;
  /** Seconds a user's or role's closure is believed. Default 30. */
  readonly roleSeconds?: number;
  /** Entries per plane; the oldest go first, of sessions those of the user that has most. Default 10 000. */
  readonly maxEntries?: number;
  /** Milliseconds; for tests. */
  readonly now?: () => number;
  /** Milliseconds since the epoch, against which sessions expire; for tests. */
  readonly wallClock?: () => number;
}

/**
 * Remembers identities and roles. Lookups that failed, and sessions that do not exist, are not remembered; one lookup
 * runs for all who ask at the same moment. Several sessions of one user share its roles.
 */
export class CachedPrincipalDirectory extends PrincipalDirectory {
  private readonly sessions: ExpiringCache<SessionOwner | null>;
  private readonly userRoles: ExpiringCache<readonly string[]>;
  private readonly roleRoles: ExpiringCache<readonly string[] | null>;
  private readonly wallClock: () => number;

  constructor(
    private readonly directory: PrincipalDirectory,
    options: DirectoryCacheOptions = {},
  ) {
    super();
    const { identitySeconds = 3600, roleSeconds = 30, maxEntries = 10_000 } = options;
    const now = options.now ?? (() => performance.now());
    this.wallClock = options.wallClock ?? Date.now;
    // One user may have many sessions; of the others everybody has one entry.
    this.sessions = new ExpiringCache(identitySeconds * 1000, maxEntries, now, ({ userId }) => userId);
    this.userRoles = new ExpiringCache(roleSeconds * 1000, maxEntries, now);
    this.roleRoles = new ExpiringCache(roleSeconds * 1000, maxEntries, now);
  }

  /** Remembered, never beyond its end. */
  async ownerOfSession(token: string): Promise<SessionOwner | null> {
    const key = digest(token);
    const owner = await this.sessions.get(key, () => this.directory.ownerOfSession(token));
    if (!owner?.expiresAt || owner.expiresAt.getTime() > this.wallClock()) return owner;
    this.sessions.forget(key);
    return null;
  }

  /** Remembered for `roleSeconds`. */
  rolesOfUser(userId: string): Promise<readonly string[]> {
    return this.userRoles.get(userId, () => this.directory.rolesOfUser(userId));
  }

  /** Remembered for `roleSeconds`. */
  rolesOfRole(name: string): Promise<readonly string[] | null> {
    return this.roleRoles.get(name, () => this.directory.rolesOfRole(name));
  }

  /** The session has ended. */
  forgetSession(token: string): void {
    this.sessions.forget(digest(token));
  }

  /** They are looked up anew at the next call. */
  override forgetRoles(holder: RoleHolder): void {
    if ('userId' in holder) this.userRoles.forget(holder.userId);
    else this.roleRoles.forget(holder.role);
  }

  /** Rows of a class were written: what was learnt from it is learnt anew. */
  forgetClass(className: string): void {
    if (className === '_Session' || className === '_User') this.sessions.clear();
    if (className === '_Role' || className === '_User') {
      this.userRoles.clear();
      this.roleRoles.clear();
    }
  }
}

/** Tokens are credentials: what is kept could not be used as one. */
function digest(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('base64');
}
