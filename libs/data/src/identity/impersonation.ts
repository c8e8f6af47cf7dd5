import {
  Agent,
  impersonationLabel,
  type ImpersonationOrder,
  MASTER,
  sessionIdentity,
  userIdOf,
  type UserReference,
} from '#core';
import { ExpiringCache } from './expiring-cache.js';

/** Sessions of users as Parse keeps them, for acting as one. Tokens are credentials: they are returned to the caller alone. */
export abstract class UserSessions {
  /** The token of the user's newest session that has not ended; null: there is none. @throws StoreError */
  abstract newest(userId: string): Promise<string | null>;
  /**
   * Makes a restricted session that ends within the hour.
   * @returns its token; null: no such user
   * @throws StoreError
   */
  abstract mint(userId: string): Promise<string | null>;
}

/** The user cannot be impersonated. */
export class ImpersonationError extends Error {
  /** Stays the same where two copies of the package meet. */
  override readonly name = 'ImpersonationError';
}

/** How a user is acted as. */
export interface ImpersonateOptions {
  /** When the user has no session, make one. Default false. */
  readonly mint?: boolean;
  /** For records; see `IdentityOptions`. Default: the agent's own. */
  readonly label?: unknown;
}

export interface ImpersonationTimes {
  /** Seconds a session that was found is used without being looked for again. Default 30. */
  readonly seconds?: number;
  /** Milliseconds; for tests. */
  readonly now?: () => number;
}

/** Users whose sessions are remembered. */
const MAX_USERS = 10_000;

/**
 * Acting as a user by a session of that user: rights are then those of the session, in every respect. For the
 * configuration and for code of the application; nothing of a request leads here.
 */
export class Impersonation {
  private readonly tokens: ExpiringCache<string | null>;

  constructor(
    private readonly sessions: UserSessions,
    { seconds = 30, now = () => performance.now() }: ImpersonationTimes = {},
  ) {
    this.tokens = new ExpiringCache(seconds * 1000, MAX_USERS, now);
  }

  /**
   * A token to act as the user with.
   * @throws ImpersonationError when there is none, and none may or could be made
   * @throws StoreError
   */
  async tokenFor({ userId, mint }: ImpersonationOrder): Promise<string> {
    // Apart by order: one that may not make a session must not be answered with the wait for one that is made.
    const token = await this.tokens.get(`${mint} ${userId}`, async () => {
      const found = await this.sessions.newest(userId);
      return found ?? (mint ? this.sessions.mint(userId) : null);
    });
    if (token !== null) return token;
    throw new ImpersonationError(
      mint ? `no user '${userId}' to make a session for` : `no active session of user '${userId}'`,
    );
  }

  /**
   * The same agent, acting as the user from now on.
   * @throws ImpersonationError when the agent has not the master key, or as `tokenFor`
   * @throws TypeError when `user` is none
   */
  async impersonate(agent: Agent, user: UserReference, options: ImpersonateOptions = {}): Promise<Agent> {
    const userId = userIdOf(user, 'impersonate');
    if (!agent.usesMasterKey && agent.impersonatedUserId === null)
      throw new ImpersonationError('only an agent with the master key can act as a user');
    const token = await this.tokenFor({ kind: 'impersonate', userId, mint: options.mint ?? false });
    return new Agent({
      ...sameCaller(agent),
      identity: sessionIdentity(token),
      impersonatedUserId: userId,
      impersonationLabel: impersonationLabel(options.label) ?? agent.impersonationLabel,
    });
  }

  /** Back to the master key; the session goes on. An agent that impersonates no user stays as it is. */
  stopImpersonating(agent: Agent): Agent {
    return agent.impersonatedUserId === null ? agent : new Agent({ ...sameCaller(agent), identity: MASTER });
  }
}

function sameCaller({ shape, principal, tenantId, claims, correlationId, parent }: Agent) {
  return { shape, principal, tenantId, claims, correlationId, ...(parent && { parent }) };
}
