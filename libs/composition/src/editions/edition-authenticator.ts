import { type Authenticator, OuterAuthenticator } from '#auth';
import type { Edition, Editions } from './editions.js';

/**
 * Admits callers by the rules of the edition that is served, which from then on is theirs. For an agent of an earlier one there
 * are no steps above: what more scopes lead to now is not what they led to then.
 */
export class EditionAuthenticator extends OuterAuthenticator {
  private made: { readonly edition: Edition; readonly rules: Authenticator } | null = null;

  /** @param rulesOf makes the rules of an edition, once for each */
  constructor(
    private readonly editions: Pick<Editions, 'current'>,
    private readonly rulesOf: (edition: Edition) => Authenticator,
  ) {
    super();
  }

  protected inner(): Authenticator {
    const { current } = this.editions;
    if (this.made?.edition !== current) this.made = { edition: current, rules: this.rulesOf(current) };
    return this.made.rules;
  }
}
