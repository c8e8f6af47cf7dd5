import {
  Agent,
  ageClock,
  type AgentOptions,
  impersonationLabel,
  type ImpersonationOrder,
  MASTER,
  sessionIdentity,
  toAgentOptions,
  readUserId,
  type UserReference,
} from '#core';
import { ExpiringCache } from './expiring-cache.js';

/**
 * Reads and creates sessions of users in Parse, for acting as a user. Tokens are credentials: they are returned to the caller
 * only.
 */
export abstract class UserSessions {
  /** The token of the user's newest session that has not expired; null: there is none. @throws StoreError */
  abstract newest(userId: string): Promise<string | null>;
  /**
   * Creates a restricted session that expires within the hour.
   * @returns its token; null: no such user
   * @throws StoreError
   */
  abstract mint(userId: string): Promise<string | null>;
}

/** The user cannot be impersonated. */
export class ImpersonationError extends Error {
  /** A constant, so that it is the same in two copies of the package. */
  override readonly name = 'ImpersonationError';
}

/** How a user is acted as. */
export interface ImpersonateOptions {
  /** Creates a session when the user has none. Default false. */
  readonly mint?: boolean;
  /** The reason, for audit records; at most 128 characters. Default: the agent's own. */
  readonly label?: unknown;
}

/** Milliseconds for which a found session is used without another lookup. */
const SESSION_AGE = 30_000;

/** Maximum number of cached sessions. */
const MAX_USERS = 10_000;

/**
 * Acts as a user through a session of that user: the rights are those of the session. For the configuration and for
 * application code; nothing in a request can reach it.
 */
export class Impersonation {
  private readonly tokens = new ExpiringCache<string | null>(SESSION_AGE, MAX_USERS, ageClock);

  constructor(private readonly sessions: UserSessions) {}

  /**
   * A token for acting as the user.
   * @throws ImpersonationError when there is none and creating one is not permitted or fails
   * @throws StoreError
   */
  async tokenFor({ userId, mint }: ImpersonationOrder): Promise<string> {
    // The two kinds have separate keys: a request that may not create a session must not receive a session that another one
    // creates.
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
   * Makes the same agent act as the user from now on.
   * @throws ImpersonationError when the agent does not have the master key, or as `tokenFor`
   * @throws TypeError when `user` is not a user
   */
  async impersonate(agent: Agent, user: UserReference, options: ImpersonateOptions = {}): Promise<Agent> {
    const userId = readUserId(user, 'impersonate');
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

  /** Returns to the master key; the session continues. An agent that impersonates no user stays unchanged. */
  stopImpersonating(agent: Agent): Agent {
    return agent.impersonatedUserId === null ? agent : new Agent({ ...sameCaller(agent), identity: MASTER });
  }
}

/** Without whom it acts as. */
function sameCaller(agent: Agent): AgentOptions {
  const { impersonatedUserId: _user, impersonationLabel: _label, ...caller } = toAgentOptions(agent);
  return caller;
}
