import { Unauthorized } from '#agent';

/** Nobody can say at this moment whether the credential is good: worth another try, and never an acceptance. */
export class AuthenticationUnavailable extends Error {
  override readonly name = 'AuthenticationUnavailable';
  /** @param cause for the log only, as the whole message is */
  constructor(override readonly cause: string) {
    super(`authentication is unavailable: ${cause}`);
  }
}

/** A good token that does not reach far enough: HTTP 403 and the scopes that would. */
export class InsufficientScope extends Error {
  override readonly name = 'InsufficientScope';
  /** @param scopes all that are needed, those the caller has included */
  constructor(readonly scopes: readonly string[]) {
    super('insufficient scope');
  }
}

/** A token was shown that is no good. Told apart from no token at all, and no further. */
export class InvalidToken extends Unauthorized {}
