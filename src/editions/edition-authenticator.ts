import type { Agent } from '#agent';
import { Authenticator, type CredentialSource } from '#auth';
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

  private rules(): Authenticator {
    const { current } = this.editions;
    if (this.made?.edition !== current) this.made = { edition: current, rules: this.rulesOf(current) };
    return this.made.rules;
  }
}
