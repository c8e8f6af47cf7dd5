import type { Agent } from '#agent';
import { Authenticator, type CredentialSource } from './authenticator.js';
import type { StepUp } from './oauth/scope-ladder.js';

/** Stands before another authenticator and says what that one says, wherever a subclass does not say otherwise. */
export abstract class OuterAuthenticator extends Authenticator {
  constructor() {
    super();
    // A property of every authenticator: that of whoever is asked, at the time.
    Object.defineProperty(this, 'challenge', { get: () => this.inner().challenge });
  }

  /** Asked each time. */
  protected abstract inner(): Authenticator;

  authenticate(request: CredentialSource): Promise<Agent> {
    return this.inner().authenticate(request);
  }

  override showsCredential(request: Pick<CredentialSource, 'headers'>): boolean {
    return this.inner().showsCredential(request);
  }

  override challengeTo(request: Pick<CredentialSource, 'headers'>): string | undefined {
    return this.inner().challengeTo(request);
  }

  override scopeChallenge(scopes: readonly string[]): string | undefined {
    return this.inner().scopeChallenge(scopes);
  }

  override stepsAbove(agent: Agent): readonly StepUp[] {
    return this.inner().stepsAbove(agent);
  }
}
