import { type Agent, Unauthorized } from '#agent';
import type { AuthRule } from './auth-rule.js';
import { Authenticator } from './authenticator.js';
import type { Credentials } from './credentials.js';

/** Tries the configured rules in order. No rule, or none that recognises the caller: refused. */
export class RuleAuthenticator extends Authenticator {
  constructor(private readonly rules: readonly AuthRule[]) {
    super();
  }

  async authenticate(credentials: Credentials): Promise<Agent> {
    for (const rule of this.rules) {
      const agent = await rule.recognise(credentials);
      if (agent) return agent;
    }
    throw new Unauthorized('no rule recognised the caller');
  }
}
