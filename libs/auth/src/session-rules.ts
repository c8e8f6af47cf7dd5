import { Agent, type AgentDefinition, type ImpersonationOrder, sessionIdentity, Unauthorized } from '#core';
import { type Credentials, presentedSession } from './credentials.js';
import { AuthRule } from './authenticator.js';

/** Looks up the user of a session token. */
export abstract class SessionOwners {
  /** @returns the user's id; null when the session does not exist or has expired */
  abstract userOf(token: string): Promise<string | null>;
}

async function agentOf(
  token: string,
  owners: SessionOwners,
  { shape, tenantId }: Pick<Agent, 'shape'> & Partial<Pick<Agent, 'tenantId'>>,
): Promise<Agent> {
  const userId = await owners.userOf(token);
  if (userId === null) throw new Unauthorized('invalid session token');
  return new Agent({
    shape,
    identity: sessionIdentity(token),
    principal: `user:${userId}`,
    ...(tenantId !== undefined && { tenantId }),
  });
}

/** `X-Parse-Session-Token`: a signed-in user, who reads with that user's rights. */
export class ParseSessionRule extends AuthRule {
  constructor(
    private readonly shape: AgentDefinition,
    private readonly owners: SessionOwners,
  ) {
    super();
  }

  async recognise(credentials: Credentials): Promise<Agent | null> {
    const token = presentedSession(credentials);
    return token === undefined ? null : agentOf(token, this.owners, { shape: this.shape });
  }

  override knows(credentials: Credentials): Promise<boolean> {
    return isSomebodysSession(credentials, this.owners);
  }
}

/**
 * Callers that another rule admits and that read with the rights of their own session. Without a session they are
 * refused.
 */
export class CallerSessionRule extends AuthRule {
  constructor(
    private readonly admission: AuthRule,
    private readonly owners: SessionOwners,
  ) {
    super();
  }

  async recognise(credentials: Credentials, recognisedElsewhere?: boolean): Promise<Agent | null> {
    const admitted = await this.admission.recognise(credentials, recognisedElsewhere);
    return admitted && withOwnSession(admitted, credentials, this.owners);
  }

  override isSettled(credentials: Credentials): boolean {
    return this.admission.isSettled(credentials);
  }

  override async knows(credentials: Credentials): Promise<boolean> {
    return (await isSomebodysSession(credentials, this.owners)) || this.admission.knows(credentials);
  }
}

/** Whether the request shows a valid session. */
export async function isSomebodysSession(credentials: Credentials, owners: SessionOwners): Promise<boolean> {
  const token = presentedSession(credentials);
  return token !== undefined && (await owners.userOf(token)) !== null;
}

/** The same caller with the rights of its session. @throws Unauthorized without a session */
export function withOwnSession(
  admitted: Agent,
  credentials: Credentials,
  owners: SessionOwners,
): Promise<Agent> {
  const token = presentedSession(credentials);
  if (token === undefined) throw new Unauthorized('no session token');
  return agentOf(token, owners, admitted);
}

/** Finds the session for a configured impersonation. */
export abstract class ImpersonatedSessions {
  /** @returns the session token; null when the user has no session */
  abstract tokenFor(order: ImpersonationOrder): Promise<string | null>;
}

/** Callers that another rule admits and that act as the configured user. The request cannot choose the user. */
export class ImpersonatingRule extends AuthRule {
  constructor(
    private readonly admission: AuthRule,
    private readonly order: ImpersonationOrder,
    private readonly sessions: ImpersonatedSessions,
  ) {
    super();
  }

  async recognise(credentials: Credentials, recognisedElsewhere?: boolean): Promise<Agent | null> {
    const admitted = await this.admission.recognise(credentials, recognisedElsewhere);
    return admitted && actingAs(this.order, admitted, this.sessions);
  }

  override isSettled(credentials: Credentials): boolean {
    return this.admission.isSettled(credentials);
  }

  override knows(credentials: Credentials): Promise<boolean> {
    return this.admission.knows(credentials);
  }
}

/** The same caller, acting as the configured user. @throws Unauthorized when that user has no session */
export async function actingAs(
  order: ImpersonationOrder,
  { shape, principal, tenantId, claims, correlationId }: Agent,
  sessions: ImpersonatedSessions,
): Promise<Agent> {
  const token = await sessions.tokenFor(order);
  if (token === null) throw new Unauthorized('no active session of the impersonated user');
  return new Agent({
    shape,
    principal,
    tenantId,
    claims,
    correlationId,
    identity: sessionIdentity(token),
    impersonatedUserId: order.userId,
  });
}
