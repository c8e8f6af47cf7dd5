import {
  type Agent,
  isUserId,
  MASTER_PRINCIPALS,
  type Principals,
  createPrincipals,
  toRoleName,
  strictPrincipals,
  Unauthorized,
  findWidening,
  refuse,
} from '#core';
import { StoreError } from '../record-store.js';
import type { PrincipalDirectory } from './principal-directory.js';

/** Errors that do not concern roles: the call has timed out or was cancelled. */
const ENDS_THE_CALL: ReadonlySet<string> = new Set(['timeout', 'cancelled']);

/** Resolves the identity of an agent to the principals that its reads are matched against. */
export class PrincipalResolver {
  constructor(
    private readonly directory: PrincipalDirectory,
    /** Whether a role's reads exclude public rows. Default: they include them. */
    private readonly strictRole: (agent: Agent) => boolean = () => false,
  ) {}

  /** As `resolveAgent` where nothing has to be looked up or compared; null: `resolveAgent` does. */
  resolveNow(agent: Agent): Principals | null {
    return agent.parent === null && agent.usesMasterKey ? MASTER_PRINCIPALS : null;
  }

  /**
   * Roles that cannot be read reduce the rights; a session that cannot be resolved gives none.
   * @throws Unauthorized for a session that does not exist, has expired or has no user, and for a client without one
   * @throws Refused `access_denied` for an invalid user id, and for a role that does not exist
   * @throws StoreError when a session cannot be looked up, or time is up
   */
  async resolve(agent: Agent): Promise<Principals> {
    const { identity } = agent;
    switch (identity.kind) {
      case 'master':
        if (!agent.usesMasterKey) throw new Unauthorized('client mode without a session');
        return MASTER_PRINCIPALS;
      case 'sessionToken':
        return this.user(await this.findSignedIn(identity.token));
      case 'aclUser':
        if (!isUserId(identity.userId)) throw refuse.identityUnresolved('not a user id');
        return this.user(identity.userId);
      case 'aclRole':
        return this.role(toRoleName(identity.role), this.strictRole(agent));
    }
  }

  /**
   * The rights under which an agent acts. A sub-agent with an identity of its own is compared with every agent above it each
   * time: roles may change during its lifetime.
   * @throws as `resolve`, and Refused when it would have more rights than one of them
   */
  async resolveAgent(agent: Agent): Promise<Principals> {
    const own = await this.resolve(agent);
    for (let above = agent.parent; above; above = above.parent) {
      if (above.identity === agent.identity) continue;
      const widened = findWidening(await this.resolve(above), own);
      if (widened) throw refuse.subAgentWidens(widened);
    }
    return own;
  }

  /**
   * Looks up again which roles an assumed user or role has, for all agents that act as it. No effect for a session or the
   * master key.
   * @throws as `resolve`
   */
  async refreshScope(agent: Agent): Promise<void> {
    const { identity } = agent;
    if (identity.kind === 'aclUser') this.directory.forgetRoles({ userId: identity.userId });
    else if (identity.kind === 'aclRole') this.directory.forgetRoles({ role: toRoleName(identity.role) });
    else return;
    await this.resolve(agent);
  }

  private async findSignedIn(token: string): Promise<string> {
    const owner = token === '' ? null : await this.directory.ownerOfSession(token);
    if (!owner || !isUserId(owner.userId)) throw new Unauthorized('invalid session token');
    return owner.userId;
  }

  private async user(userId: string): Promise<Principals> {
    return createPrincipals(userId, await fewerOnFault(() => this.directory.rolesOfUser(userId), []));
  }

  private async role(name: string, strict: boolean): Promise<Principals> {
    if (name === '') throw refuse.identityUnresolved('an empty role name');
    const roles = await fewerOnFault(() => this.directory.rolesOfRole(name), [name]);
    if (roles === null) throw refuse.identityUnresolved(`no role '${name}'`);
    return strict ? strictPrincipals(roles) : createPrincipals(null, roles);
  }
}

async function fewerOnFault<T>(walk: () => Promise<T>, fewer: T): Promise<T> {
  try {
    return await walk();
  } catch (error) {
    if (error instanceof StoreError && !ENDS_THE_CALL.has(error.code)) return fewer;
    throw error;
  }
}
