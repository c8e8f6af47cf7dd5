import { type Agent, sanitizeCorrelationId, Unauthorized } from '#core';
import type { AuditSink } from '#audit';
import { type CredentialSource, mayPresentCredential } from './credentials.js';

/** An agent that the caller would get with more scopes. */
export interface StepUp {
  /** All required scopes, including those that the caller has. */
  readonly scopes: readonly string[];
  readonly shape: Agent['shape'];
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

/** Delegates to another authenticator; subclasses override single methods. */
export abstract class DelegatingAuthenticator extends Authenticator {
  constructor() {
    super();
    // `challenge` is a property of Authenticator: it is read from the inner authenticator at each access.
    Object.defineProperty(this, 'challenge', { get: () => this.inner().challenge });
  }

  /** Called at each use, so that the inner authenticator may change. */
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

/** Failed authentications recorded per second: a flood of wrong keys must not fill the audit log. */
const PER_SECOND = 10;

/** Records failed authentications without the credential. Requests without a credential are not recorded. */
export class RecordedAuthenticator extends DelegatingAuthenticator {
  private second = 0;
  private inSecond = 0;
  private suppressed = 0;

  constructor(
    private readonly authenticator: Authenticator,
    private readonly audit: Pick<AuditSink, 'recordEvent'>,
    private readonly now: () => number = Date.now,
  ) {
    super();
  }

  override async authenticate(request: CredentialSource): Promise<Agent> {
    try {
      return await super.authenticate(request);
    } catch (error) {
      if (error instanceof Unauthorized && this.showsCredential(request)) this.recordRefused(request, error);
      throw error;
    }
  }

  protected inner(): Authenticator {
    return this.authenticator;
  }

  /** Also called for credentials that are checked elsewhere, such as a console cookie. */
  recordRefused(
    { remoteAddress, headers }: Pick<CredentialSource, 'remoteAddress' | 'headers'>,
    { cause }: Pick<Unauthorized, 'cause'>,
  ): void {
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
      ...(cause !== undefined && { cause }),
      ...(this.suppressed > 0 && { suppressed: this.suppressed }),
    });
    this.suppressed = 0;
  }
}
