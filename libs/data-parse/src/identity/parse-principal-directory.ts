import { isUserId } from '#agent';
import { MAX_ROLE_DEPTH, PrincipalDirectory, type SessionOwner, StoreError } from '#data';
import type { ParseAnswer, ParseConnection } from '../connection/parse-connection.js';
import { MASTER_KEY, type ParseCredentials, sessionCredentials } from '../connection/parse-credentials.js';
import { ParseFault } from '../connection/parse-faults.js';
import { isPlainObject, isPointer } from '../query/plain-value.js';

const LIMITS = { maxTimeMS: 5000 };

/** Roles of one level of inheritance; nobody holds more. */
const ROLES_AT_ONCE = 1000;

/**
 * Sessions and roles as Parse Server tells them: a session of itself, roles to the master key. Roles are followed upwards
 * one level per request.
 */
export class ParsePrincipalDirectory extends PrincipalDirectory {
  constructor(
    private readonly connection: ParseConnection,
    /** For tests. */
    private readonly now: () => Date = () => new Date(),
  ) {
    super();
  }

  async ownerOfSession(token: string): Promise<SessionOwner | null> {
    try {
      const credentials = sessionCredentials(token);
      const [user, session] = await Promise.all([
        this.get('/users/me', credentials),
        this.get('/sessions/me', credentials),
      ]);
      const userId = user['objectId'];
      // Of a user who is gone there is only the pointer left.
      if (!isUserId(userId) || typeof user['createdAt'] !== 'string') return null;
      const expiresAt = endOf(session);
      if (expiresAt !== null && !(expiresAt > this.now())) return null;
      return { userId, expiresAt };
    } catch (error) {
      // Parse Server has answered, and not with a user.
      if (error instanceof ParseFault && error.code !== 'failed' && error.code !== 'unavailable') return null;
      if (error instanceof StoreError && error.code === 'session_ended') return null;
      throw error;
    }
  }

  async rolesOfUser(userId: string): Promise<readonly string[]> {
    if (!isUserId(userId)) return [];
    const held = await this.roles({ users: { __type: 'Pointer', className: '_User', objectId: userId } });
    return this.closure(held);
  }

  async rolesOfRole(name: string): Promise<readonly string[] | null> {
    const [role] = await this.roles({ name: { $eq: name } });
    return role ? this.closure([role]) : null;
  }

  /** Breadth-first, each role once. Only roles that exist are found, so one that is gone hands nothing on. */
  private async closure(start: readonly Role[]): Promise<string[]> {
    const reached = new Map(start.map((role) => [role.objectId, role.name]));
    let frontier = [...reached.keys()];
    for (let depth = 0; depth < MAX_ROLE_DEPTH && frontier.length > 0; depth += 1) {
      const children = frontier.map((objectId) => ({ __type: 'Pointer', className: '_Role', objectId }));
      const above = await this.roles({ roles: { $in: children } });
      const fresh = above.filter((role) => !reached.has(role.objectId));
      for (const role of fresh) reached.set(role.objectId, role.name);
      frontier = [...new Set(fresh.map((role) => role.objectId))];
    }
    return [...new Set(reached.values())].sort();
  }

  private async roles(where: Readonly<Record<string, unknown>>): Promise<Role[]> {
    const query = { where, keys: 'name', limit: ROLES_AT_ONCE };
    const { results } = await this.get('/classes/_Role', MASTER_KEY, query);
    return Array.isArray(results) ? results.flatMap(roleOf) : [];
  }

  private get(
    path: string,
    credentials: ParseCredentials,
    query?: Readonly<Record<string, unknown>>,
  ): Promise<ParseAnswer> {
    const { signal } = new AbortController();
    return this.connection.send(
      { credentials, method: 'GET', path, ...(query && { query }) },
      { ...LIMITS, signal },
    );
  }
}

interface Role {
  readonly objectId: string;
  readonly name: string;
}

function roleOf(row: unknown): Role[] {
  if (!isPlainObject(row)) return [];
  const { objectId, name } = row;
  return typeof objectId === 'string' && typeof name === 'string' && name !== '' ? [{ objectId, name }] : [];
}

/** An end in a form nobody could read is an end that has come. */
function endOf({ expiresAt, user }: ParseAnswer): Date | null {
  if (!isPointer(user) && !isPlainObject(user)) return new Date(0);
  if (expiresAt === undefined || expiresAt === null) return null;
  const iso = isPlainObject(expiresAt) ? expiresAt['iso'] : expiresAt;
  const end = new Date(typeof iso === 'string' ? iso : Number.NaN);
  return Number.isNaN(end.getTime()) ? new Date(0) : end;
}
