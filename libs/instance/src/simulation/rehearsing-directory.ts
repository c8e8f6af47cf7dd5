import { type Identity, sessionIdentity } from '#agent';
import { PrincipalDirectory, type SessionOwner } from '#data';
import type { AgentIdentity } from '#config';

/** Nobody's id: a signed-in user without roles. */
const SOMEBODY = 'rehearsal';

/** The roles of the database; a session is whoever its token names. */
export class RehearsingDirectory extends PrincipalDirectory {
  constructor(private readonly roles: PrincipalDirectory) {
    super();
  }

  ownerOfSession(token: string): Promise<SessionOwner | null> {
    return Promise.resolve({ userId: token, expiresAt: null });
  }

  rolesOfUser(userId: string): Promise<readonly string[]> {
    return userId === SOMEBODY ? Promise.resolve([]) : this.roles.rolesOfUser(userId);
  }

  rolesOfRole(name: string): Promise<readonly string[] | null> {
    return this.roles.rolesOfRole(name);
  }
}

/** @param user whose session is rehearsed, for an agent that reads with its caller's */
export function rehearsedIdentity(
  identity: AgentIdentity | undefined,
  user = SOMEBODY,
): Identity | undefined {
  if (identity === 'callerSession') return sessionIdentity(user);
  if (identity?.kind === 'claimedUser') return { kind: 'aclUser', userId: user };
  return identity?.kind === 'impersonate' ? sessionIdentity(identity.userId) : identity;
}
