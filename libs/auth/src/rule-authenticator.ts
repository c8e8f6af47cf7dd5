import { type Agent, Unauthorized } from '#core';
import { Authenticator, type StepUp } from './authenticator.js';
import {
  bearerToken,
  type Credentials,
  type CredentialSource,
  showingOnly,
  shownCredentials,
} from './credentials.js';
import { InsufficientScope } from './errors.js';
import type { BearerChallenge } from './oauth/resource-metadata.js';

/** One way to authenticate a caller. Rules are tried in order; the first that recognises a credential decides. */
export abstract class AuthRule {
  /**
   * @param recognisedElsewhere whether another rule recognises the same credential; its comparison is then not
   * delayed
   * @returns null when the credential does not belong to this rule
   * @throws Unauthorized when it does and is invalid
   */
  abstract recognise(
    credentials: Credentials,
    recognisedElsewhere?: boolean,
  ): Promise<Agent | null> | Agent | null;

  /** Whether `recognise` answers without slow work. Such rules run first; the configured order still decides. */
  isSettled(_credentials: Credentials): boolean {
    return true;
  }

  /**
   * Whether the only shown credential belongs to this rule and is valid. Missing scopes or further credentials do not
   * matter.
   * @throws AuthenticationUnavailable when it cannot be checked
   */
  async knows(credentials: Credentials): Promise<boolean> {
    try {
      return (await this.recognise(credentials)) !== null;
    } catch (error) {
      if (error instanceof Unauthorized) return false;
      throw error;
    }
  }

  /** The agents that more scopes would give, nearest first. */
  stepsAbove(_agent: Agent): readonly StepUp[] {
    return [];
  }
}

interface RuleAuthenticatorOptions {
  /** Challenge for callers without a valid token. Default: none. */
  readonly bearer?: BearerChallenge | null;
  /** Additional headers, in lower case, that rules treat as credentials. Default none. */
  readonly otherCredentials?: readonly string[];
}

/**
 * Evaluates the configured rules: the first one in order that recognises the caller decides. A caller that no rule
 * recognises is refused, and so is any request with a credential that no rule knows, whatever else it shows.
 */
export class RuleAuthenticator extends Authenticator {
  override readonly challenge: string | undefined;
  private readonly bearer: BearerChallenge | null;
  private readonly otherCredentials: readonly string[];

  constructor(
    private readonly rules: readonly AuthRule[],
    { bearer = null, otherCredentials = [] }: RuleAuthenticatorOptions = {},
  ) {
    super();
    this.bearer = bearer;
    this.otherCredentials = otherCredentials;
    this.challenge = bearer?.unknown();
  }

  async authenticate(credentials: Credentials): Promise<Agent> {
    const shown = shownCredentials(credentials, this.otherCredentials);
    let agent: Agent;
    try {
      agent = await this.decided(credentials, shown);
    } catch (error) {
      if (error instanceof InsufficientScope) await this.assertAllGood(credentials, shown);
      throw error;
    }
    await this.assertAllGood(credentials, shown);
    return agent;
  }

  override showsCredential(request: Pick<CredentialSource, 'headers'>): boolean {
    return shownCredentials(request, this.otherCredentials).length > 0;
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

  /**
   * Slow rules are postponed until another rule recognises the caller, or none does. Postponed rules that come first
   * in the order still decide, so the result does not depend on speed.
   */
  private async decided(credentials: Credentials, shown: readonly string[]): Promise<Agent> {
    const postponed: AuthRule[] = [];
    for (const rule of this.rules) {
      if (!rule.isSettled(credentials)) {
        postponed.push(rule);
        continue;
      }
      let agent: Agent | null;
      try {
        agent = await rule.recognise(credentials);
      } catch (error) {
        const earlier = await firstOf(postponed, credentials, false);
        if (earlier) return earlier;
        throw error;
      }
      if (agent === null) continue;
      if (postponed.length === 0) return agent;
      const recognisedElsewhere = await this.knowsTheKey(rule, credentials, shown);
      return (await firstOf(postponed, credentials, recognisedElsewhere)) ?? agent;
    }
    const agent = await firstOf(postponed, credentials, false);
    if (agent) return agent;
    throw new Unauthorized('no rule recognised the caller');
  }

  /** Whether a rule recognises the very key that slow rules would compare. */
  private async knowsTheKey(
    rule: AuthRule,
    credentials: Credentials,
    shown: readonly string[],
  ): Promise<boolean> {
    const key = shown.find((name) => name === 'x-mcp-api-key' || name === 'authorization');
    return key !== undefined && rule.knows(showingOnly(credentials, key, this.otherCredentials));
  }

  /** @throws Unauthorized when another credential of the request is invalid */
  private async assertAllGood(credentials: Credentials, shown: readonly string[]): Promise<void> {
    // A single credential is the one that was recognised.
    if (shown.length < 2) return;
    for (const name of shown) {
      const alone = showingOnly(credentials, name, this.otherCredentials);
      if (!(await this.isKnown(alone)))
        throw new Unauthorized('a credential that no rule knows beside another');
    }
  }

  private async isKnown(alone: Credentials): Promise<boolean> {
    const [settled, slow] = [true, false].map((wanted) =>
      this.rules.filter((rule) => rule.isSettled(alone) === wanted),
    ) as [AuthRule[], AuthRule[]];
    for (const rule of [...settled, ...slow]) if (await rule.knows(alone)) return true;
    return false;
  }
}

async function firstOf(
  rules: readonly AuthRule[],
  credentials: Credentials,
  recognisedElsewhere: boolean,
): Promise<Agent | null> {
  for (const rule of rules) {
    const agent = await rule.recognise(credentials, recognisedElsewhere);
    if (agent) return agent;
  }
  return null;
}
