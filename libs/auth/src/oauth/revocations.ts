import type { Claims } from './token-parts.js';

/** Whether a token that was verified has been taken back since. Asked on every request, also of tokens known by heart. */
export interface Revocations {
  /**
   * @throws InvalidToken when it was
   * @throws AuthenticationUnavailable when nobody can tell: never taken for a no
   */
  assertHolds(token: string, claims: Claims): Promise<void>;
}
