import { Unauthorized } from '#core';

/** The credential cannot be checked now. The request may be repeated; it is never accepted. */
export class AuthenticationUnavailable extends Error {
  /** A constant name: `instanceof` fails where two copies of the package are loaded. */
  override readonly name = 'AuthenticationUnavailable';
  constructor(
    /** For the log only, like the whole message. */
    override readonly cause: string,
  ) {
    super(`authentication is unavailable: ${cause}`);
  }
}

/** A valid token without the required scopes: answered with HTTP 403 and the scopes to request. */
export class InsufficientScope extends Error {
  /** A constant name: `instanceof` fails where two copies of the package are loaded. */
  override readonly name = 'InsufficientScope';
  constructor(
    /** All required scopes, including those that the caller has. */
    readonly scopes: readonly string[],
  ) {
    super('insufficient scope');
  }
}

/** The request shows an invalid token. It is distinguished from a request without a token, and not further. */
export class InvalidToken extends Unauthorized {}

/** The right key, after its end: answered like a wrong one. */
export class ExpiredCredential extends Unauthorized {
  constructor(
    /** Of the rule, for records. */
    readonly keyName: string,
  ) {
    super('expired');
  }
}
