import { type Identity, isUserId } from '#agent';
import { InvalidToken } from '../authentication-faults.js';
import { claimAt, type ClaimPath } from './claim-values.js';
import type { Claims } from './token-parts.js';

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
export async function userOf(
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
