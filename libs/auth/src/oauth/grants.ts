import { Agent, type AgentDefinition, type Identity, isUserId } from '#core';
import type { PrincipalDirectory, UserField } from '#data';
import type { StepUp } from '../authenticator.js';
import type { Credentials } from '../credentials.js';
import { AuthenticationUnavailable, InvalidToken } from '../errors.js';
import { claimAt, type ClaimPath, type Claims, type TenantClaim, readTenant } from './claims.js';

/** Looks up users in Parse. */
type ClaimedUsers = Pick<PrincipalDirectory, 'findUser'>;

/** The claim that names the user with whose rights an agent reads. */
export interface UserClaim {
  readonly claim: ClaimPath;
  /** Default `objectId`. */
  readonly field?: UserField;
}

/** Characters. No user name or email address is longer. */
const MAX_VALUE = 320;

/** @throws InvalidToken when the token does not name an existing user */
async function findUser(
  claims: Claims,
  { claim, field = 'objectId' }: UserClaim,
  users: ClaimedUsers,
): Promise<Identity> {
  const value = claimAt(claims, claim);
  const usable = typeof value === 'string' && value !== '' && value.length <= MAX_VALUE;
  if (!usable || (field === 'objectId' && !isUserId(value))) throw new InvalidToken('no user');
  // An unverified email address could be that of another user.
  if (field === 'email' && claims['email_verified'] !== true) throw new InvalidToken('email not verified');
  const userId = await users.findUser(field, value).catch((error: unknown) => {
    throw new AuthenticationUnavailable(`users: ${String((error as Error).name)}`);
  });
  if (userId === null) throw new InvalidToken('unknown user');
  return { kind: 'aclUser', userId };
}

/** Post-processes an admitted agent: returns it, or one with another identity. */
export type Admission = (admitted: Agent, credentials: Credentials) => Promise<Agent> | Agent;

export interface GrantOptions {
  readonly definition: AgentDefinition;
  readonly identity: Identity | UserClaim;
  /** Default: the tenant of the agent's definition. */
  readonly tenant?: TenantClaim | undefined;
  readonly users: ClaimedUsers;
  /** Default: the agent is returned unchanged. */
  readonly admission?: Admission | undefined;
  /** The name of the rule. Default: it has none. */
  readonly keyName?: string | undefined;
}

/** A named agent that tokens are mapped to. */
export class Grant {
  constructor(private readonly options: GrantOptions) {}

  get definition(): AgentDefinition {
    return this.options.definition;
  }

  /** @throws InvalidToken when the token lacks a claim that the agent needs */
  async admit(claims: Claims, principal: string, credentials: Credentials): Promise<Agent> {
    const { definition, identity, tenant, users, admission, keyName } = this.options;
    const agent = new Agent({
      definition,
      principal,
      claims,
      ...(keyName !== undefined && { keyName }),
      identity: 'claim' in identity ? await findUser(claims, identity, users) : identity,
      ...(tenant && { tenantId: readTenant(claims, tenant) }),
    });
    return admission ? admission(agent, credentials) : agent;
  }
}

export interface ScopedGrantsOptions {
  /** Tokens without all of these scopes are refused. */
  readonly required: readonly string[];
  /** For tokens with none of the scopes in `steps`. */
  readonly base: Grant;
  /** In increasing order of rights; the last matching step wins. */
  readonly steps: readonly (readonly [scope: string, grant: Grant])[];
}

/** Maps the scopes of a token to an agent, and lists the agents that more scopes would give. */
export class ScopedGrants {
  constructor(private readonly options: ScopedGrantsOptions) {}

  get required(): readonly string[] {
    return this.options.required;
  }

  lacksRequired(scopes: ReadonlySet<string>): boolean {
    return this.options.required.some((scope) => !scopes.has(scope));
  }

  findGrant(scopes: ReadonlySet<string>): Grant {
    return this.options.steps[this.findStep(scopes)]?.[1] ?? this.options.base;
  }

  /** The steps above the current one, nearest first. */
  above(scopes: ReadonlySet<string>): readonly StepUp[] {
    const { steps, required } = this.options;
    return steps.slice(this.findStep(scopes) + 1).map(([scope, { definition }]) => ({
      scopes: [...new Set([...required, ...this.listHeldScopes(scopes), scope])],
      definition,
    }));
  }

  /** Only scopes of this configuration: a token's other scopes are not disclosed. */
  private listHeldScopes(scopes: ReadonlySet<string>): string[] {
    return this.options.steps.map(([scope]) => scope).filter((scope) => scopes.has(scope));
  }

  private findStep(scopes: ReadonlySet<string>): number {
    return this.options.steps.findLastIndex(([scope]) => scopes.has(scope));
  }
}
