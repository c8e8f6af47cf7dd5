import { Agent, type AgentShape, type Identity } from '#agent';
import type { Credentials } from '../credentials.js';
import { type TenantClaim, tenantOf } from './claim-values.js';
import { type ClaimedUsers, type UserClaim, userOf } from './claimed-users.js';
import type { Claims } from './token-parts.js';

/** What comes of a caller that was admitted: the same, or one with another identity. */
export type Admission = (admitted: Agent, credentials: Credentials) => Promise<Agent> | Agent;

export interface GrantOptions {
  readonly shape: AgentShape;
  readonly identity: Identity | UserClaim;
  /** Default: the shape's own. */
  readonly tenant?: TenantClaim | undefined;
  readonly users: ClaimedUsers;
  /** Default: as admitted. */
  readonly admission?: Admission | undefined;
}

/** One named agent that tokens lead to. */
export class Grant {
  constructor(private readonly options: GrantOptions) {}

  get shape(): AgentShape {
    return this.options.shape;
  }

  /** @throws InvalidToken when the token lacks what the agent needs of it */
  async admit(claims: Claims, principal: string, credentials: Credentials): Promise<Agent> {
    const { shape, identity, tenant, users, admission } = this.options;
    const agent = new Agent({
      shape,
      principal,
      claims,
      identity: 'claim' in identity ? await userOf(claims, identity, users) : identity,
      ...(tenant && { tenantId: tenantOf(claims, tenant) }),
    });
    return admission ? admission(agent, credentials) : agent;
  }
}
