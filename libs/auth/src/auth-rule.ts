import { type Agent, Unauthorized } from '#agent';
import type { Credentials } from './credentials.js';
import type { StepUp } from './oauth/scope-ladder.js';

/** One way to recognise a caller. Rules are tried in order; the first that recognises a credential decides. */
export abstract class AuthRule {
  /**
   * @param vouched another rule knows the same credential: finding out about it here is not put off
   * @returns null when the credential is not this rule's business
   * @throws Unauthorized when it is, and is no good
   */
  abstract recognise(credentials: Credentials, vouched?: boolean): Promise<Agent | null> | Agent | null;

  /** Whether `recognise` answers without slow work. Rules of which this is true are asked first; their order decides all the same. */
  isSettled(_credentials: Credentials): boolean {
    return true;
  }

  /**
   * Whether the one credential that is shown is of a kind that this rule takes, and good. What a caller lacks besides does
   * not count.
   * @throws AuthenticationUnavailable when nobody can tell
   */
  async knows(credentials: Credentials): Promise<boolean> {
    try {
      return (await this.recognise(credentials)) !== null;
    } catch (error) {
      if (error instanceof Unauthorized) return false;
      throw error;
    }
  }

  /** What an agent of this rule could have been with more scopes, nearest first. */
  stepsAbove(_agent: Agent): readonly StepUp[] {
    return [];
  }
}
