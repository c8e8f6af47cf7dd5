import { isUserId, isJsonObject } from '#core';
import { MAX_ROLE_DEPTH, PrincipalDirectory, type SessionOwner, StoreError, type UserField } from '#data';
import {
  MASTER_KEY,
  type ParseAnswer,
  type ParseConnection,
  type ParseCredentials,
  sessionCredentials,
} from '../connection/parse-connection.js';
import { readCount, readPages, readResults } from '../read/read-pages.js';

const LIMITS = { maxTimeMS: 10_000 };

/** Maximum roles of one level of inheritance. */
const ROLES_AT_ONCE = 1000;

export interface ParseDirectoryOptions {
  /** Looks roles up in place of Parse Server, for deployments without a master key. */
  readonly roles?: PrincipalDirectory;
  /** For tests. */
  readonly now?: () => Date;
}

/**
 * Sessions and roles as Parse Server returns them: a session is read with its own token, roles with the master key. Roles are
 * followed upwards with one request per level.
 */
export class ParsePrincipalDirectory extends PrincipalDirectory {
  constructor(
    private readonly connection: ParseConnection,
    private readonly options: ParseDirectoryOptions = {},
  ) {
    super();
  }

  async ownerOfSession(token: string): Promise<SessionOwner | null> {
    const { now = () => new Date() } = this.options;
    const session = await askOrNull(() => this.ofSession('/sessions/me', token));
    if (!session) return null;
    const userId = (await this.ownRow(token)) ?? (await this.findExistingUser(session['user']));
    if (!isUserId(userId)) return null;
    const expiresAt = readEnd(session);
    return expiresAt === null || expiresAt > now() ? { userId, expiresAt } : null;
  }

  /** The id in the user's own row, as far as its session may read it; for a deleted user only the pointer remains. */
  private async ownRow(token: string): Promise<unknown> {
    const user = await askOrNull(() => this.ofSession('/users/me', token));
    return typeof user?.['createdAt'] === 'string' ? user['objectId'] : null;
  }

  /** Permissions may hide a user's own row from the user: then the master key reads whether the row exists. */
  private async findExistingUser(user: unknown): Promise<unknown> {
    if (!this.connection.hasMasterKey || !isJsonObject(user) || !isUserId(user['objectId'])) return null;
    return this.findUser('objectId', user.objectId);
  }

  async findUser(field: UserField, value: string): Promise<string | null> {
    if (this.options.roles) return this.options.roles.findUser(field, value);
    const query = { where: { [field]: { $eq: value } }, keys: 'objectId', limit: 2 };
    const [user, another] = readResults(await this.get('/classes/_User', MASTER_KEY, query));
    const id = user?.['objectId'];
    return !another && isUserId(id) ? id : null;
  }

  async rolesOfUser(userId: string): Promise<readonly string[]> {
    if (!isUserId(userId)) return [];
    if (this.options.roles) return this.options.roles.rolesOfUser(userId);
    const held = await this.roles({ users: { __type: 'Pointer', className: '_User', objectId: userId } });
    return this.closure(held);
  }

  async rolesOfRole(name: string): Promise<readonly string[] | null> {
    if (this.options.roles) return this.options.roles.rolesOfRole(name);
    const [role] = await this.roles({ name: { $eq: name } });
    return role ? this.closure([role]) : null;
  }

  /** Breadth-first, each role once. The query finds only existing roles, so a deleted role passes nothing on. */
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
    const ask = (query: object) => this.get('/classes/_Role', MASTER_KEY, { where, ...query });
    const { rows } = await readPages({
      server: this.connection,
      limit: ROLES_AT_ONCE,
      read: async (page) => readResults(await ask({ keys: 'name', order: 'objectId', ...page })),
      count: async () => readCount(await ask({ count: 1, limit: 0 })),
    });
    return rows.flatMap(readRole);
  }

  private async ofSession(path: string, token: string): Promise<ParseAnswer> {
    return this.get(path, sessionCredentials(token));
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

/** Null when Parse Server answered, also with a refusal. */
async function askOrNull(ask: () => Promise<ParseAnswer>): Promise<ParseAnswer | null> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof StoreError && (error.code === 'session_ended' || error.code === 'denied'))
      return null;
    throw error;
  }
}

interface Role {
  readonly objectId: string;
  readonly name: string;
}

function readRole(row: unknown): Role[] {
  if (!isJsonObject(row)) return [];
  const { objectId, name } = row;
  return typeof objectId === 'string' && typeof name === 'string' && name !== '' ? [{ objectId, name }] : [];
}

/** An expiry that cannot be parsed counts as passed. */
function readEnd({ expiresAt, user }: ParseAnswer): Date | null {
  if (!isJsonObject(user)) return new Date(0);
  if (expiresAt === undefined || expiresAt === null) return null;
  const iso = isJsonObject(expiresAt) ? expiresAt['iso'] : expiresAt;
  const end = new Date(typeof iso === 'string' ? iso : Number.NaN);
  return Number.isNaN(end.getTime()) ? new Date(0) : end;
}
