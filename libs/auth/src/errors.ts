import { Unauthorized } from '#agent';

/** Nobody can say at this moment whether the credential is good: worth another try, and never an acceptance. */
export class AuthenticationUnavailable extends Error {
  /** Stays the same where two copies of the package meet. */
  override readonly name = 'AuthenticationUnavailable';
  constructor(
    /** For the log only, as the whole message is. */
    override readonly cause: string,
  ) {
    super(`authentication is unavailable: ${cause}`);
  }
}

/** A good token that does not reach far enough: HTTP 403 and the scopes that would. */
export class InsufficientScope extends Error {
  /** Stays the same where two copies of the package meet. */
  override readonly name = 'InsufficientScope';
  constructor(
    /** All that are needed, those the caller has included. */
    readonly scopes: readonly string[],
  ) {
    super('insufficient scope');
  }
}

/** A token was shown that is no good. Told apart from no token at all, and no further. */
export class InvalidToken extends Unauthorized {}
