import type { Agent } from '#agent';
import type { Credentials } from './credentials.js';
import type { StepUp } from './oauth/scope-ladder.js';

/** One way to recognise a caller. Rules are tried in order; the first that recognises a credential decides. */
export abstract class AuthRule {
  /** @returns null when the credential is not this rule's business @throws Unauthorized when it is, and is no good */
  abstract recognise(credentials: Credentials): Promise<Agent | null> | Agent | null;

  /** What an agent of this rule could have been with more scopes, nearest first. */
  stepsAbove(_agent: Agent): readonly StepUp[] {
    return [];
  }
}
