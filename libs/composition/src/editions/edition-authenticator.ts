import type { Agent } from '#agent';
import { Authenticator, type CredentialSource, type StepUp } from '#auth';
import type { Edition, Editions } from './editions.js';

/** Admits callers by the rules of the edition that is served, which from then on is theirs. */
export class EditionAuthenticator extends Authenticator {
  private made: { readonly edition: Edition; readonly rules: Authenticator } | null = null;

  /** @param rulesOf makes the rules of an edition, once for each */
  constructor(
    private readonly editions: Pick<Editions, 'current'>,
    private readonly rulesOf: (edition: Edition) => Authenticator,
  ) {
    super();
    // A property of every authenticator, whose value here is that of the rules.
    Object.defineProperty(this, 'challenge', { get: () => this.rules().challenge });
  }

  authenticate(request: CredentialSource): Promise<Agent> {
    return this.rules().authenticate(request);
  }

  override challengeTo(request: Pick<CredentialSource, 'headers'>): string | undefined {
    return this.rules().challengeTo(request);
  }

  override scopeChallenge(scopes: readonly string[]): string | undefined {
    return this.rules().scopeChallenge(scopes);
  }

  /** None for an agent of an earlier edition: what more scopes lead to now is not what they led to then. */
  override stepsAbove(agent: Agent): readonly StepUp[] {
    return this.rules().stepsAbove(agent);
  }

  private rules(): Authenticator {
    const { current } = this.editions;
    if (this.made?.edition !== current) this.made = { edition: current, rules: this.rulesOf(current) };
    return this.made.rules;
  }
}
