import { type Agent, Unauthorized } from '#agent';
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

/** One way to recognise a caller. Rules are tried in order; the first that recognises a credential decides. */
export abstract class AuthRule {
  /**
   * @param vouched another rule knows the same credential: finding out about it here is not put off
   * @returns null when the credential is not this rule's business
   * @throws Unauthorized when it is, and is no good
   */
  abstract recognise(
    credentials: Credentials,
    recognisedElsewhere?: boolean,
  ): Promise<Agent | null> | Agent | null;

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

interface RuleAuthenticatorOptions {
  /** What callers are told where tokens are taken. Default: nothing. */
  readonly bearer?: BearerChallenge | null;
  /** Headers, in lower case, that rules take for credentials besides the usual ones. Default none. */
  readonly otherCredentials?: readonly string[];
}

/**
 * Asks the configured rules: the first in their order that recognises the caller decides. No rule, or none that recognises the
 * caller: refused. So is whoever shows a credential that no rule knows, whatever is shown beside it.
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
   * Slow rules are put off until another one recognises the caller, or none does; those before it in the order are asked
   * then, so that who a caller is does not depend on it.
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

  /** Whether a rule knows the very key that slow rules would compare. */
  private async knowsTheKey(
    rule: AuthRule,
    credentials: Credentials,
    shown: readonly string[],
  ): Promise<boolean> {
    const key = shown.find((name) => name === 'x-mcp-api-key' || name === 'authorization');
    return key !== undefined && rule.knows(showingOnly(credentials, key, this.otherCredentials));
  }

  /** @throws Unauthorized when a credential beside the one that decided is no good */
  private async assertAllGood(credentials: Credentials, shown: readonly string[]): Promise<void> {
    // The only one is what the caller was recognised by.
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
