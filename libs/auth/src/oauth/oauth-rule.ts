import type { Agent } from '#agent';
import { InsufficientScope, InvalidToken } from '../authentication-faults.js';
import { AuthRule } from '../auth-rule.js';
import { bearerToken, type Credentials } from '../credentials.js';
import { isSomebodysSession } from '../parse-session-rule.js';
import type { SessionOwners } from '../session-owners.js';
import { type ClaimPath, principalOf, scopesOf } from './claim-values.js';
import type { IssuerDocuments } from './issuer-documents.js';
import type { Revocations } from './revocations.js';
import type { ScopeLadder, StepUp } from './scope-ladder.js';
import type { TokenVerifier } from './token-verifier.js';

export interface OAuthRuleOptions {
  readonly issuer: string;
  readonly verifier: TokenVerifier;
  readonly ladder: ScopeLadder;
  readonly documents: IssuerDocuments;
  /** Default: `scope`, else `scp`. */
  readonly scopeClaim?: ClaimPath | undefined;
  /** Where the agents of tokens read with the sessions of their callers. Default: none does. */
  readonly sessionOwners?: SessionOwners | undefined;
  /** All are asked. Default: a token holds until it expires. */
  readonly revocations?: readonly Revocations[];
}

const NONE: readonly StepUp[] = [];

/** Access tokens of one issuer, from the `Authorization` header alone. */
export class OAuthRule extends AuthRule {
  private readonly above = new WeakMap<Agent, readonly StepUp[]>();

  constructor(private readonly options: OAuthRuleOptions) {
    super();
  }

  get issuer(): string {
    return this.options.issuer;
  }

  get documents(): IssuerDocuments {
    return this.options.documents;
  }

  get requiredScopes(): readonly string[] {
    return this.options.ladder.required;
  }

  /** The agents that an agent of this rule could have been with more scopes, nearest first. */
  override stepsAbove(agent: Agent): readonly StepUp[] {
    return this.above.get(agent) ?? NONE;
  }

  /**
   * @throws InvalidToken for a token of this issuer that is no good
   * @throws InsufficientScope for a good one that does not reach the lowest agent
   * @throws AuthenticationUnavailable
   */
  async recognise(credentials: Credentials): Promise<Agent | null> {
    const token = bearerToken(credentials);
    const { issuer, verifier, ladder, revocations = [], scopeClaim } = this.options;
    if (token === undefined || !verifier.concerns(token)) return null;
    const claims = await verifier.verify(token);
    for (const revocation of revocations) await revocation.assertHolds(token, claims);
    const scopes = scopesOf(claims, scopeClaim);
    if (ladder.lacksRequired(scopes)) throw new InsufficientScope(ladder.required);
    const agent = await ladder.grantOf(scopes).admit(claims, principalOf(issuer, claims), credentials);
    const above = ladder.above(scopes);
    if (above.length > 0) this.above.set(agent, above);
    return agent;
  }

  /** A token of this issuer that holds, however far it reaches; a session where agents of tokens read with one. */
  override async knows(credentials: Credentials): Promise<boolean> {
    const token = bearerToken(credentials);
    const { verifier, revocations = [], sessionOwners } = this.options;
    if (token === undefined)
      return sessionOwners !== undefined && isSomebodysSession(credentials, sessionOwners);
    try {
      if (!verifier.concerns(token)) return false;
      const claims = await verifier.verify(token);
      for (const revocation of revocations) await revocation.assertHolds(token, claims);
      return true;
    } catch (error) {
      if (error instanceof InvalidToken) return false;
      throw error;
    }
  }
}
