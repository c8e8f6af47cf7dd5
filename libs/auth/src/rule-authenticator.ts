import { type Agent, Unauthorized } from '#agent';
import type { AuthRule } from './auth-rule.js';
import { Authenticator, type CredentialSource } from './authenticator.js';
import type { BearerChallenge } from './challenge.js';
import { bearerToken, type Credentials } from './credentials.js';
import type { StepUp } from './oauth/scope-ladder.js';

/** Tries the configured rules in order. No rule, or none that recognises the caller: refused. */
export class RuleAuthenticator extends Authenticator {
  override readonly challenge: string | undefined;

  /** @param bearer what callers are told where tokens are taken; null: nothing */
  constructor(
    private readonly rules: readonly AuthRule[],
    private readonly bearer: BearerChallenge | null = null,
  ) {
    super();
    this.challenge = bearer?.unknown();
  }

  async authenticate(credentials: Credentials): Promise<Agent> {
    for (const rule of this.rules) {
      const agent = await rule.recognise(credentials);
      if (agent) return agent;
    }
    throw new Unauthorized('no rule recognised the caller');
  }

  override challengeTo(request: Pick<CredentialSource, 'headers'>): string | undefined {
    return bearerToken(request) === undefined ? this.challenge : this.bearer?.invalid();
  }

  override scopeChallenge(scopes: readonly string[]): string | undefined {
    return this.bearer?.insufficient(scopes);
  }

  override stepsAbove(agent: Agent): readonly StepUp[] {
    for (const rule of this.rules) {
      const above = rule.stepsAbove(agent);
      if (above.length > 0) return above;
    }
    return [];
  }
}
