import { type Agent, Refused, sanitizeCorrelationId, Unauthorized } from '#core';
import type { AuditSink } from '#audit';
import { type SuspendedAgents, SharedStateUnavailable } from '#state';
import {
  bearerToken,
  type Credentials,
  type CredentialSource,
  mayPresentCredential,
  keepOneCredential,
  listShownCredentials,
  readKeyHeader,
} from './credentials.js';
import { AuthenticationUnavailable, ExpiredCredential, InsufficientScope } from './errors.js';
import { computeDigest } from './key-hash.js';
import type { BearerChallenge } from './oauth/resource-metadata.js';

/** An agent that the caller would get with more scopes. */
export interface StepUp {
  /** All required scopes, including those that the caller has. */
  readonly scopes: readonly string[];
  readonly definition: Agent['definition'];
}

/** Turns the credentials of a request into the agent that it runs as. Called at most once per request. */
export abstract class Authenticator {
  /** Value of `WWW-Authenticate` on a 401 for a request without credentials. Default: the header is not sent. */
  readonly challenge?: string | undefined;

  /**
   * Authenticates the caller.
   * @throws Unauthorized when the credentials are not recognised
   * @throws InsufficientScope when they are valid and lack a scope
   * @throws AuthenticationUnavailable when they cannot be checked now; any other error is answered as an internal
   * error
   */
  abstract authenticate(request: CredentialSource): Promise<Agent>;

  /**
   * Whether a request shows a credential at all. A request without one is not recorded as a failed sign-in. Default:
   * any header that clients, browsers and proxies do not send anyway counts as a credential.
   */
  showsCredential(request: Pick<CredentialSource, 'headers'>): boolean {
    return mayPresentCredential(request);
  }

  /** Value of `WWW-Authenticate` on the 401 that answers this request. */
  challengeTo(_request: Pick<CredentialSource, 'headers'>): string | undefined {
    return this.challenge;
  }

  /** Value of `WWW-Authenticate` on a 403 for missing scopes. Default: the header is not sent. */
  scopeChallenge(_scopes: readonly string[]): string | undefined {
    return undefined;
  }

  /** The agents that this agent's caller would get with more scopes, nearest first. */
  stepsAbove(_agent: Agent): readonly StepUp[] {
    return [];
  }
}

/** One way to authenticate a caller. Rules are tried in order; the first that recognises a credential decides. */
export abstract class AuthRule {
  /** SHA-256 in hexadecimal of the only API key that the rule recognises. Default: it may recognise others. */
  readonly keyDigest?: string | undefined;

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

/** Rules in their order. Those of a key are found by its digest, so that a call costs the same however many keys there are. */
class OrderedRules {
  /** The rules that recognise callers by more than one key. */
  readonly withoutKey: readonly AuthRule[];
  private readonly ofKey = new Map<string, AuthRule[]>();
  private readonly place: ReadonlyMap<AuthRule, number>;

  constructor(private readonly all: readonly AuthRule[]) {
    this.withoutKey = all.filter(({ keyDigest }) => keyDigest === undefined);
    this.place = new Map(all.map((rule, at) => [rule, at]));
    for (const rule of all) {
      const { keyDigest } = rule;
      if (keyDigest === undefined) continue;
      this.ofKey.set(keyDigest, [...(this.ofKey.get(keyDigest) ?? []), rule]);
    }
  }

  /** The rules that may recognise the request. */
  recognising(credentials: Credentials): readonly AuthRule[] {
    const key = readKeyHeader(credentials);
    const own = key === undefined ? undefined : this.ofKey.get(computeDigest(key).toString('hex'));
    if (!own) return this.withoutKey;
    const placeOf = (rule: AuthRule) => this.place.get(rule) as number;
    return [...own, ...this.withoutKey].sort((one, other) => placeOf(one) - placeOf(other));
  }

  /** The rules that may know the only credential of a request. Those of keys may know the session that is shown beside a key. */
  knowing(alone: Credentials): readonly AuthRule[] {
    return readKeyHeader(alone) === undefined ? this.all : this.recognising(alone);
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
  private readonly rules: OrderedRules;

  constructor(
    rules: readonly AuthRule[],
    { bearer = null, otherCredentials = [] }: RuleAuthenticatorOptions = {},
  ) {
    super();
    this.rules = new OrderedRules(rules);
    this.bearer = bearer;
    this.otherCredentials = otherCredentials;
    this.challenge = bearer?.unknown();
  }

  async authenticate(credentials: Credentials): Promise<Agent> {
    const shown = listShownCredentials(credentials, this.otherCredentials);
    let agent: Agent;
    try {
      agent = await this.decide(credentials, shown);
    } catch (error) {
      if (error instanceof InsufficientScope) await this.assertAllGood(credentials, shown);
      throw error;
    }
    await this.assertAllGood(credentials, shown);
    return agent;
  }

  override showsCredential(request: Pick<CredentialSource, 'headers'>): boolean {
    return listShownCredentials(request, this.otherCredentials).length > 0;
  }

  override challengeTo(request: Pick<CredentialSource, 'headers'>): string | undefined {
    return bearerToken(request) === undefined ? this.challenge : this.bearer?.invalid();
  }

  override scopeChallenge(scopes: readonly string[]): string | undefined {
    return this.bearer?.insufficient(scopes);
  }

  override stepsAbove(agent: Agent): readonly StepUp[] {
    // A key has no scopes.
    for (const rule of this.rules.withoutKey) {
      const above = rule.stepsAbove(agent);
      if (above.length > 0) return above;
    }
    return [];
  }

  /**
   * Slow rules are postponed until another rule recognises the caller, or none does. Postponed rules that come first
   * in the order still decide, so the result does not depend on speed.
   */
  private async decide(credentials: Credentials, shown: readonly string[]): Promise<Agent> {
    const postponed: AuthRule[] = [];
    for (const rule of this.rules.recognising(credentials)) {
      if (!rule.isSettled(credentials)) {
        postponed.push(rule);
        continue;
      }
      let agent: Agent | null;
      try {
        agent = await rule.recognise(credentials);
      } catch (error) {
        const earlier = await findFirstRule(postponed, credentials, false);
        if (earlier) return earlier;
        throw error;
      }
      if (agent === null) continue;
      if (postponed.length === 0) return agent;
      const recognisedElsewhere = await this.knowsTheKey(rule, credentials, shown);
      return (await findFirstRule(postponed, credentials, recognisedElsewhere)) ?? agent;
    }
    const agent = await findFirstRule(postponed, credentials, false);
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
    return key !== undefined && rule.knows(keepOneCredential(credentials, key, this.otherCredentials));
  }

  /** @throws Unauthorized when another credential of the request is invalid */
  private async assertAllGood(credentials: Credentials, shown: readonly string[]): Promise<void> {
    // A single credential is the one that was recognised.
    if (shown.length < 2) return;
    for (const name of shown) {
      const alone = keepOneCredential(credentials, name, this.otherCredentials);
      if (!(await this.isKnown(alone)))
        throw new Unauthorized('a credential that no rule knows beside another');
    }
  }

  private async isKnown(alone: Credentials): Promise<boolean> {
    const [settled, slow] = [true, false].map((wanted) =>
      this.rules.knowing(alone).filter((rule) => rule.isSettled(alone) === wanted),
    ) as [AuthRule[], AuthRule[]];
    for (const rule of [...settled, ...slow]) if (await rule.knows(alone)) return true;
    return false;
  }
}

async function findFirstRule(
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

/**
 * The rules of the served version, made once per version. An agent of an earlier version has no step-up scopes, because the
 * current scopes may lead to different rights.
 */
export function followVersions<Version>(
  versions: { readonly current: Version },
  createRules: (version: Version) => Authenticator,
): () => Authenticator {
  let made: { readonly version: Version; readonly rules: Authenticator } | null = null;
  return () => {
    const { current } = versions;
    if (made?.version !== current) made = { version: current, rules: createRules(current) };
    return made.rules;
  };
}

/** Failed authentications recorded per second: a flood of wrong keys must not fill the audit log. */
const PER_SECOND = 10;

export interface RecordedAuthenticatorOptions {
  /** Authenticates in the place of the authenticator itself. Default: the authenticator does. */
  readonly admit?: ((request: CredentialSource) => Promise<Agent>) | undefined;
  readonly now?: () => number;
}

/**
 * Admits callers for every transport, unless their agent is suspended. Records failed authentications without the credential;
 * requests without a credential are not recorded.
 */
export class RecordedAuthenticator extends Authenticator {
  private readonly admit: RecordedAuthenticatorOptions['admit'];
  private readonly now: () => number;
  private second = 0;
  private inSecond = 0;
  private suppressed = 0;

  /** @param current the authenticator that decides now */
  constructor(
    private readonly current: () => Authenticator,
    private readonly audit: Pick<AuditSink, 'recordEvent'>,
    private readonly suspended: Pick<SuspendedAgents, 'assertActive'>,
    { admit, now = Date.now }: RecordedAuthenticatorOptions = {},
  ) {
    super();
    this.admit = admit;
    this.now = now;
    // A property of Authenticator: it is read at each access.
    Object.defineProperty(this, 'challenge', { get: () => current().challenge });
  }

  /** As every authenticator. @throws Refused when the agent is suspended */
  async authenticate(request: CredentialSource): Promise<Agent> {
    let agent: Agent;
    try {
      agent = await (this.admit ? this.admit(request) : this.current().authenticate(request));
    } catch (error) {
      if (error instanceof Unauthorized && this.showsCredential(request)) this.recordRefused(request, error);
      throw error;
    }
    try {
      await this.suspended.assertActive(agent);
    } catch (error) {
      if (error instanceof SharedStateUnavailable)
        throw new AuthenticationUnavailable('the suspended agents cannot be read');
      if (error instanceof Refused) this.recordRefused(request, { cause: 'suspended' }, agent);
      throw error;
    }
    return agent;
  }

  override showsCredential(request: Pick<CredentialSource, 'headers'>): boolean {
    return this.current().showsCredential(request);
  }

  override challengeTo(request: Pick<CredentialSource, 'headers'>): string | undefined {
    return this.current().challengeTo(request);
  }

  override scopeChallenge(scopes: readonly string[]): string | undefined {
    return this.current().scopeChallenge(scopes);
  }

  override stepsAbove(agent: Agent): readonly StepUp[] {
    return this.current().stepsAbove(agent);
  }

  /**
   * Also called for credentials that are checked elsewhere, such as a console cookie.
   * @param agent of a known caller whose agent is suspended
   */
  recordRefused(
    { remoteAddress, headers, requestId }: Omit<CredentialSource, 'method'>,
    refused: Pick<Unauthorized, 'cause'>,
    agent?: Agent,
  ): void {
    const { cause } = refused;
    const at = this.now();
    const second = Math.floor(at / 1000);
    if (second !== this.second) this.inSecond = 0;
    this.second = second;
    this.inSecond += 1;
    if (this.inSecond > PER_SECOND) {
      this.suppressed += 1;
      return;
    }
    const named = headers['mcp-session-id'];
    const correlationId = sanitizeCorrelationId(typeof named === 'string' ? named : undefined);
    this.audit.recordEvent({
      type: 'authentication',
      at: new Date(at).toISOString(),
      success: false,
      ...(remoteAddress !== undefined && { remote_address: remoteAddress }),
      ...(correlationId !== undefined && { correlation_id: correlationId }),
      ...(requestId !== undefined && { request_id: requestId }),
      ...(cause !== undefined && { cause }),
      ...(refused instanceof ExpiredCredential && { key_name: refused.keyName }),
      ...(agent && { principal: agent.principal, agent_name: agent.definition.name }),
      ...(agent && agent.keyName !== null && { key_name: agent.keyName }),
      ...(this.suppressed > 0 && { suppressed: this.suppressed }),
    });
    this.suppressed = 0;
  }
}
