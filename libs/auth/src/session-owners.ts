/** Who signed in with a session token. */
export abstract class SessionOwners {
  /** @returns the user's id; null for a token that nobody signed in with, or no longer */
  abstract userOf(token: string): Promise<string | null>;
}
