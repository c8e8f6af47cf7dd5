import { Agent, type AgentShape, type Identity, isUserId } from '#agent';
import type { StepUp } from '../authenticator.js';
import type { Credentials } from '../credentials.js';
import { InvalidToken } from '../errors.js';
import { claimAt, type ClaimPath, type Claims, type TenantClaim, tenantOf } from './claims.js';

/** How a claim finds its user. */
export const USER_FIELDS = ['objectId', 'username', 'email'] as const;
export type UserField = (typeof USER_FIELDS)[number];

/** Users as Parse keeps them. */
export abstract class ClaimedUsers {
  /** @returns the id of the one user with that value; null when there is none, or more than one */
  abstract idOf(field: UserField, value: string): Promise<string | null>;
}

/** With whose rights an agent reads, by what the token says of its owner. */
export interface UserClaim {
  readonly claim: ClaimPath;
  /** Default `objectId`. */
  readonly field?: UserField;
}

/** Characters; no user name or address is longer. */
const MAX_VALUE = 320;

/** @throws InvalidToken when the token names no user there is */
async function userOf(
  claims: Claims,
  { claim, field = 'objectId' }: UserClaim,
  users: ClaimedUsers,
): Promise<Identity> {
  const value = claimAt(claims, claim);
  const usable = typeof value === 'string' && value !== '' && value.length <= MAX_VALUE;
  if (!usable || (field === 'objectId' && !isUserId(value))) throw new InvalidToken('no user');
  // Whoever may choose an address without owning it could choose somebody else's.
  if (field === 'email' && claims['email_verified'] !== true) throw new InvalidToken('email not verified');
  const userId = await users.idOf(field, value);
  if (userId === null) throw new InvalidToken('unknown user');
  return { kind: 'aclUser', userId };
}

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

export interface ScopedGrantsOptions {
  /** Without all of them nobody is admitted. */
  readonly required: readonly string[];
  /** For tokens with none of the scopes below. */
  readonly base: Grant;
  /** From the least to the most; a token with several gets the last. */
  readonly steps: readonly (readonly [scope: string, grant: Grant])[];
}

/** From the scopes of a token to its agent, and to those that it does not reach. */
export class ScopedGrants {
  constructor(private readonly options: ScopedGrantsOptions) {}

  get required(): readonly string[] {
    return this.options.required;
  }

  lacksRequired(scopes: ReadonlySet<string>): boolean {
    return this.options.required.some((scope) => !scopes.has(scope));
  }

  grantOf(scopes: ReadonlySet<string>): Grant {
    return this.options.steps[this.stepOf(scopes)]?.[1] ?? this.options.base;
  }

  /** The steps above the one that these scopes reach, nearest first. */
  above(scopes: ReadonlySet<string>): readonly StepUp[] {
    const { steps, required } = this.options;
    return steps.slice(this.stepOf(scopes) + 1).map(([scope, { shape }]) => ({
      scopes: [...new Set([...required, ...this.held(scopes), scope])],
      shape,
    }));
  }

  /** Scopes of ours alone: what else a token is good for is nobody's business here. */
  private held(scopes: ReadonlySet<string>): string[] {
    return this.options.steps.map(([scope]) => scope).filter((scope) => scopes.has(scope));
  }

  private stepOf(scopes: ReadonlySet<string>): number {
    return this.options.steps.findLastIndex(([scope]) => scopes.has(scope));
  }
}
