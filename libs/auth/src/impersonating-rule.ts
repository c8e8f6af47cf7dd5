import { Agent, type ImpersonationOrder, sessionIdentity, Unauthorized } from '#agent';
import { AuthRule } from './auth-rule.js';
import type { Credentials } from './credentials.js';

/** Finds the session that an operator's order to act as a user is carried out with. */
export abstract class ImpersonatedSessions {
  /** @returns its token; null when the user has none */
  abstract tokenFor(order: ImpersonationOrder): Promise<string | null>;
}

/** Callers that another rule admits, and who act as the user that the configuration names. Nothing they send changes whom. */
export class ImpersonatingRule extends AuthRule {
  constructor(
    private readonly admission: AuthRule,
    private readonly order: ImpersonationOrder,
    private readonly sessions: ImpersonatedSessions,
  ) {
    super();
  }

  async recognise(credentials: Credentials, vouched?: boolean): Promise<Agent | null> {
    const admitted = await this.admission.recognise(credentials, vouched);
    return admitted && actingAs(this.order, admitted, this.sessions);
  }

  override isSettled(credentials: Credentials): boolean {
    return this.admission.isSettled(credentials);
  }

  override knows(credentials: Credentials): Promise<boolean> {
    return this.admission.knows(credentials);
  }
}

/** The same caller, acting as the user of the order. @throws Unauthorized when that user has no session */
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
